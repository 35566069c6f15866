#include "launch/grpc_cluster.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace muster::launch {
namespace {

using GrpcKind = GrpcPlace::Kind;

const GrpcCluster kCluster{.chief = "tf-chief:1",
                           .workers = {"tf-worker-0:2", "tf-worker-1:3"},
                           .parameter_servers = {"tf-ps-0:4"}};

TEST(GrpcEnvironment, TellsTensorFlowTwoItsClusterAndTheTasksPlace) {
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

TEST(GrpcEnvironment, LeavesOutTheListsThatAreEmpty) {
  const auto variables = grpc_environment({.chief = "one-chief:1"}, {});

  EXPECT_EQ(variables.at("TF_CONFIG"),
            R"({"cluster":{"chief":["one-chief:1"]},"task":{"type":"chief","index":0}})");
  EXPECT_EQ(variables.at("PS_HOSTS"), "[]");
}

TEST(GrpcEnvironment, TellsGradientsProgramsTheSameWithTheChiefAsTheFirstWorker) {
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

TEST(GrpcEnvironment, SaysTypeAndIndexAsGradientCountsThem) {
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

TEST(Base64, IsPaddedAndHasAFormForUrls) {
  EXPECT_EQ(base::to_base64(""), "");
  EXPECT_EQ(base::to_base64("f"), "Zg==");
  EXPECT_EQ(base::to_base64("\xfb\xff\xfe"), "+//+");
  EXPECT_EQ(base::to_base64_for_urls("\xfb\xff\xfe"), "-__-");
}

}  // namespace
}  // namespace muster::launch
