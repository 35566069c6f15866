#include "api/node_wire.h"

#include <gtest/gtest.h>

#include "api/test_cluster_values.h"

namespace muster::api {
namespace {

using job::Node;

TEST(NodeWire, IsReadBackAsItWasWrittenInEveryField) {
  const auto read = node_from_json(node_to_json(full_node()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_node());
}

TEST(NodeWire, HasTheShapeThatIsDocumented) {
  const Node node{.name = "n1",
                  .pool = "default",
                  .state = "ready",
                  .cpu_milli = 8'000,
                  .cpu_milli_free = 7'500,
                  .memory_bytes = 4,
                  .memory_bytes_free = 3,
                  .devices = {{.index = 0, .model = "A100", .free_milli = 500, .jobs = {"dist"}}},
                  .jobs = {"dist"},
                  .topology = {{"rack", "r1"}}};

  EXPECT_EQ(node_to_json(node),
            R"({"name":"n1","pool":"default","state":"ready","cpus":8,"cpus_free":7.5,)"
            R"("memory_bytes":4,"memory_bytes_free":3,)"
            R"("devices":[{"index":0,"model":"A100","memory_bytes":0,"free":0.5,"jobs":["dist"]}],)"
            R"("jobs":["dist"],"topology":{"rack":"r1"},"labels":{}})");
}

TEST(NodesWire, IsReadBackAsItWasWritten) {
  const std::vector<Node> nodes{full_node(), {.name = "n2", .state = "ready"}};

  EXPECT_EQ(*nodes_from_json(nodes_to_json(nodes)), nodes);
  EXPECT_EQ(nodes_to_json({}), R"({"nodes":[]})");
}

TEST(NodesWire, NamesTheFieldOfAFaultByItsWholePath) {
  const auto read =
      nodes_from_json(R"({"nodes":[{"state":"ready","devices":[{"index":0,"free":"half"}]}]})");

  ASSERT_FALSE(read);
  ASSERT_EQ(read.error().faults.size(), 2U);
  EXPECT_EQ(read.error().faults[0].field, "nodes[0].name");
  EXPECT_EQ(read.error().faults[1].field, "nodes[0].devices[0].free");
}

}  // namespace
}  // namespace muster::api
