#include "engine/process/this_node.h"

#include <gtest/gtest.h>

#include "engine/host_facts.h"

namespace muster::engine {
namespace {

TEST(ThisNode, OffersWhatTheMachineHas) {
  const Node node = this_node({});

  EXPECT_EQ(node.name, host_name());
  EXPECT_EQ(node.pool, "default");
  EXPECT_EQ(node.task_slots, 256);
  EXPECT_GT(node.cpu_milli, 0);
  EXPECT_GT(node.memory_bytes, 0);
  EXPECT_EQ(node.labels.count("numa.nodes"), 1U);
}

TEST(ThisNode, OffersTheGpusThatItIsSaidToHave) {
  const Node node = this_node(
      {.declared_gpus = DeclaredGpus{.count = 8, .model = "A100", .memory_bytes = 1 << 30}});

  EXPECT_EQ(node.gpus, 8);
  EXPECT_EQ(node.gpu_model, "A100");
  EXPECT_EQ(node.gpu_memory_bytes, 1 << 30);
  EXPECT_TRUE(node.gpu_names.empty());
}

TEST(ThisNode, StandsInThePoolAndTheRackThatItIsSaidToBeIn) {
  const Node node = this_node({.node_pool = "a100",
                               .topology = {{"rack", "r1"}},
                               .labels = {{"numa.nodes", "said"}, {"owner", "ada"}}});

  EXPECT_EQ(node.pool, "a100");
  EXPECT_EQ(node.topology.at("rack"), "r1");
  EXPECT_EQ(node.labels.at("owner"), "ada");
  EXPECT_EQ(node.labels.at("numa.nodes"), "said");
}

}  // namespace
}  // namespace muster::engine
