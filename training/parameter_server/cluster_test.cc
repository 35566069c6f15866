#include "muster/parameter_server/cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::parameter_server {
namespace {

constexpr const char* kCluster =
    R"("cluster": {"chief": ["c:1"], "worker": ["w0:2", "w1:2"], "ps": ["p0:3", "p1:3"]})";

std::string config(const std::string& task) {
  return std::string("{") + kCluster + R"(, "task": )" + task + "}";
}

TEST(ClusterFrom, FindsTheRoleOfEachTask) {
  struct Row {
    const char* task;
    Role role;
    int index;
    bool is_chief;
    const char* address;
  };
  for (const Row& row : {
           Row{R"({"type": "chief", "index": 0})", Role::kWorker, 0, true, "c:1"},
           Row{R"({"type": "worker", "index": 0})", Role::kWorker, 1, false, "w0:2"},
           Row{R"({"type": "worker", "index": "1"})", Role::kWorker, 2, false, "w1:2"},
           Row{R"({"type": "ps", "index": 1})", Role::kServer, 1, false, "p1:3"},
       }) {
    const auto cluster = cluster_from(config(row.task));
    ASSERT_TRUE(cluster) << cluster.error().to_string();
    EXPECT_EQ(cluster->role, row.role);
    EXPECT_EQ(cluster->index, row.index);
    EXPECT_EQ(cluster->is_chief, row.is_chief);
    EXPECT_EQ(cluster->address, row.address);
    EXPECT_EQ(cluster->servers, (std::vector<std::string>{"p0:3", "p1:3"}));
    EXPECT_EQ(cluster->workers, 3);
  }
}

TEST(ClusterFrom, TheMasterOrElseTheFirstWorkerIsTheChief) {
  const auto master = cluster_from(
      R"({"cluster": {"master": ["m:1"], "ps": ["p:3"]}, "task": {"type": "master", "index": 0}})");
  ASSERT_TRUE(master);
  EXPECT_TRUE(master->is_chief);
  const auto worker = cluster_from(
      R"({"cluster": {"worker": ["w:1"], "ps": ["p:3"]}, "task": {"type": "worker", "index": 0}})");
  ASSERT_TRUE(worker);
  EXPECT_TRUE(worker->is_chief);
  EXPECT_EQ(worker->index, 0);
}

TEST(ClusterFrom, ListsAllFaults) {
  struct Row {
    std::string config;
    const char* message;
  };
  for (
      const Row& row : {
          Row{"", "it is not a JSON object"},
          Row{"[1]", "it is not a JSON object"},
          Row{"{", "it is not a JSON object"},
          Row{"{}",
              "cluster is missing; cluster.ps names no parameter server; cluster names no "
              "worker; task is missing; task.index is missing"},
          Row{config(R"({"type": "evaluator", "index": 0})"),
              "task.type is 'evaluator', which takes no part in the training"},
          Row{config(R"({"type": "boss", "index": 0})"),
              "task.type is 'boss', not chief, master, worker or ps"},
          Row{config(R"({"type": "ps", "index": 2})"),
              "task.index is 2, but cluster.ps has 2 addresses"},
          Row{config(R"({"type": "ps", "index": -1})"), "task.index is -1, not a number from 0"},
          Row{config(R"({"type": 3, "index": 0.5})"),
              "task.type is missing; task.index is 0.5, not a number from 0"},
          Row{R"({"cluster": {"worker": ["w", 7], "ps": "p:1"}, "task": {"type": "ps", "index": 0}})",
              "cluster.worker has \"w\", not host:port; cluster.worker has 7, not host:port; "
              "cluster.ps is not a list of addresses; cluster.ps names no parameter server; "
              "cluster names no worker; task.index is 0, but cluster.ps has 0 addresses"},
          Row{R"({"cluster": {"chief": ["a:1"], "master": ["b:1"], "ps": ["p:70000", "p:1"]},)"
              R"( "task": {"type": "chief", "index": 0}})",
              "cluster.ps has \"p:70000\", not host:port; cluster has more than one chief or "
              "master"},
      }) {
    const auto cluster = cluster_from(row.config);
    ASSERT_FALSE(cluster) << row.config;
    EXPECT_EQ(cluster.error().code, collective::ErrorCode::kConfiguration);
    EXPECT_EQ(cluster.error().message, std::string("TF_CONFIG: ") + row.message);
    EXPECT_NE(cluster.error().advice.find("\"ps\""), std::string::npos);
  }
}

class Environment : public ::testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    ::unsetenv("TF_CONFIG");
    ::unsetenv("MUSTER_RENDEZVOUS_KEY");
  }
};

TEST_F(Environment, NamesTheVariableThatIsNotSet) {
  EXPECT_NE(cluster_from_environment().error().message.find("TF_CONFIG is not set"),
            std::string::npos);
  const std::string whole = config(R"({"type": "ps", "index": 0})");
  ::setenv("TF_CONFIG", whole.c_str(), 1);
  EXPECT_NE(cluster_from_environment().error().message.find("MUSTER_RENDEZVOUS_KEY is not set"),
            std::string::npos);
  ::setenv("MUSTER_RENDEZVOUS_KEY", "00112233445566778899aabbccddeeff", 1);
  const auto cluster = cluster_from_environment();
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->key, "00112233445566778899aabbccddeeff");
}

}  // namespace
}  // namespace muster::parameter_server
