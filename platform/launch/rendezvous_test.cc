#include "launch/rendezvous.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "launch/task_plan.h"

namespace muster::launch {
namespace {

using GrpcKind = GrpcPlace::Kind;

const GrpcCluster kCluster{.chief = "tf-chief:1",
                           .workers = {"tf-worker-0:2", "tf-worker-1:3"},
                           .parameter_servers = {"tf-ps-0:4"}};

TEST(GrpcEnvironment, GivesTensorFlow2ItsClusterAndTheTasksPlace) {
  struct Case {
    GrpcPlace place;
    std::string task;
  };
  for (const Case& c : {Case{{GrpcKind::kChief, 0}, R"({"type":"chief","index":0})"},
                        Case{{GrpcKind::kWorker, 1}, R"({"type":"worker","index":1})"},
                        Case{{GrpcKind::kParameterServer, 0}, R"({"type":"ps","index":0})"},
                        Case{{GrpcKind::kEvaluator, 0}, R"({"type":"evaluator","index":0})"}}) {
    EXPECT_EQ(grpc_environment(kCluster, c.place).at("TF_CONFIG"),
              R"({"cluster":{"chief":["tf-chief:1"],"worker":["tf-worker-0:2","tf-worker-1:3"],)"
              R"("ps":["tf-ps-0:4"]},"task":)" +
                  c.task + "}");
  }
}

TEST(GrpcEnvironment, ListsTheChiefAsAWorkerIfItIsOne) {
  GrpcCluster cluster = kCluster;
  cluster.chief_is_worker = true;
  struct Case {
    GrpcPlace place;
    std::string task;
  };
  for (const Case& c : {Case{{GrpcKind::kChief, 0}, R"({"type":"worker","index":0})"},
                        Case{{GrpcKind::kWorker, 1}, R"({"type":"worker","index":2})"},
                        Case{{GrpcKind::kParameterServer, 0}, R"({"type":"ps","index":0})"},
                        Case{{GrpcKind::kEvaluator, 0}, R"({"type":"evaluator","index":0})"}}) {
    EXPECT_EQ(grpc_environment(cluster, c.place).at("TF_CONFIG"),
              R"({"cluster":{"worker":["tf-chief:1","tf-worker-0:2","tf-worker-1:3"],)"
              R"("ps":["tf-ps-0:4"]},"task":)" +
                  c.task + "}");
  }
}

TEST(GrpcEnvironment, OmitsEmptyLists) {
  const auto variables = grpc_environment({.chief = "one-chief:1"}, {});

  EXPECT_EQ(variables.at("TF_CONFIG"),
            R"({"cluster":{"chief":["one-chief:1"]},"task":{"type":"chief","index":0}})");
  EXPECT_EQ(variables.at("PS_HOSTS"), "[]");
}

TEST(GrpcEnvironment, GivesGradientsProgramsTheClusterWithTheChiefAsFirstWorker) {
  const auto variables = grpc_environment(kCluster, {GrpcKind::kWorker, 0});

  EXPECT_EQ(variables.at("PS_CONFIG"),
            base::to_base64_for_urls(R"({"cluster":{"master":["tf-chief:1"],)"
                                     R"("worker":["tf-chief:1","tf-worker-0:2","tf-worker-1:3"],)"
                                     R"("ps":["tf-ps-0:4"]},"task":{"type":"worker","index":1},)"
                                     R"("environment":"cloud"})"));
  EXPECT_EQ(variables.at("MASTER"), "['tf-chief:1']");
  EXPECT_EQ(variables.at("WORKER_HOSTS"), "['tf-chief:1', 'tf-worker-0:2', 'tf-worker-1:3']");
  EXPECT_EQ(variables.at("PS_HOSTS"), "['tf-ps-0:4']");
}

TEST(GrpcEnvironment, SetsTypeAndIndexAsGradientCountsThem) {
  struct Case {
    GrpcPlace place;
    std::string type;
    std::string index;
  };
  for (const Case& c :
       {Case{{GrpcKind::kChief, 0}, "master", "0"}, Case{{GrpcKind::kWorker, 0}, "worker", "1"},
        Case{{GrpcKind::kWorker, 1}, "worker", "2"},
        Case{{GrpcKind::kParameterServer, 0}, "ps", "0"},
        Case{{GrpcKind::kEvaluator, 0}, "evaluator", "0"}}) {
    const auto variables = grpc_environment(kCluster, c.place);
    EXPECT_EQ(variables.at("TYPE"), c.type);
    EXPECT_EQ(variables.at("INDEX"), c.index);
  }
}

TEST(Base64, IsPaddedAndUrlSafe) {
  EXPECT_EQ(base::to_base64(""), "");
  EXPECT_EQ(base::to_base64("f"), "Zg==");
  EXPECT_EQ(base::to_base64("\xfb\xff\xfe"), "+//+");
  EXPECT_EQ(base::to_base64_for_urls("\xfb\xff\xfe"), "-__-");
}

}  // namespace
namespace {

/// worker-1 of a master and two workers.
TorchPlace place() {
  return {.master_host = "ddp-master",
          .master_port = 12345,
          .host = "ddp-worker-1",
          .rank = 2,
          .tasks = 3,
          .min_tasks = 3,
          .max_tasks = 3,
          .processes_per_task = 4,
          .group = "j1-2"};
}

TEST(TorchEnvironment, SetsTheVariablesForProgramsWithAndWithoutTorchrun) {
  const Variables expected{{"MASTER_ADDR", "ddp-master"},
                           {"MASTER_PORT", "12345"},
                           {"RANK", "2"},
                           {"WORLD_SIZE", "3"},
                           {"LOCAL_RANK", "0"},
                           {"LOCAL_WORLD_SIZE", "1"},
                           {"GROUP_RANK", "2"},
                           {"GROUP_WORLD_SIZE", "3"},
                           {"NODE_RANK", "2"},
                           {"PET_NNODES", "3"},
                           {"PET_NPROC_PER_NODE", "4"},
                           {"PET_RDZV_BACKEND", "c10d"},
                           {"PET_RDZV_ENDPOINT", "ddp-master:12345"},
                           {"PET_RDZV_ID", "j1-2"},
                           {"PET_RDZV_CONF", "is_host=0,read_timeout=300,last_call_timeout=10"},
                           {"PET_REDIRECTS", "9:1"},
                           {"PET_TEE", "9:1"},
                           {"PET_LOCAL_ADDR", "ddp-worker-1"},
                           {"PET_NODE_RANK", "2"},
                           {"PET_MASTER_ADDR", "ddp-master"},
                           {"PET_MASTER_PORT", "12345"}};

  EXPECT_EQ(torch_environment(place()), expected);
}

TEST(TorchEnvironment, OnlyTheMasterHoldsTheStore) {
  TorchPlace master = place();
  master.rank = 0;

  EXPECT_TRUE(torch_environment(master).at("PET_RDZV_CONF").starts_with("is_host=1,"));
}

TEST(TorchEnvironment, AnElasticJobMayLoseTasks) {
  TorchPlace elastic = place();
  elastic.min_tasks = 2;
  elastic.max_tasks = 5;

  EXPECT_EQ(torch_environment(elastic).at("PET_NNODES"), "2:5");
  EXPECT_EQ(torch_environment(elastic).at("PET_MAX_RESTARTS"), "16");
}

TEST(TorchEnvironment, RedirectsNoOutput) {
  TorchPlace wide = place();
  wide.processes_per_task = 9;  // 0 to 8
  EXPECT_TRUE(torch_environment(wide).contains("PET_TEE"));

  wide.processes_per_task = 10;
  EXPECT_FALSE(torch_environment(wide).contains("PET_TEE"));
  EXPECT_FALSE(torch_environment(wide).contains("PET_REDIRECTS"));
}

TEST(TorchEnvironment, NamesAnInterfaceIfAllTasksShareOne) {
  TorchPlace on_one_machine = place();
  on_one_machine.interface = "lo";

  EXPECT_EQ(torch_environment(on_one_machine).at("GLOO_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(torch_environment(on_one_machine).at("TP_SOCKET_IFNAME"), "lo");
}

}  // namespace
}  // namespace muster::launch
