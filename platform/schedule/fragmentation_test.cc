#include "schedule/fragmentation.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

double waste_of(const std::vector<UsualClaim>& usual, const NodeRoom& room) {
  Fragmentation fragmentation;
  fragmentation.set(usual);
  return waste(fragmentation.usual_for("A100", 0), room);
}

// next counts 0.4, fill 0.6.
TEST(Fragmentation, CountsWhatTheNextTaskAndAStreamOfThemCannotUse) {
  const std::vector<UsualClaim> usual = {{.claim = gpus(1, 4)}};
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000, 1000}, 8, 64)), 0);
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000, 300}, 8, 64)), 300);
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000, 1000}, 3, 64)), 2000);
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000, 1000}, 4, 64)), 0.6 * 1000);
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({0, 0}, 0, 64)), 0);
}

TEST(Fragmentation, SharesFillDevicesOneByOne) {
  const std::vector<UsualClaim> usual = {{.claim = share(400)}};
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000, 300}, 8, 64)), 0.4 * 300 + 0.6 * (200 + 300));
}

TEST(Fragmentation, WhatIsAskedOfAnotherModelOrForCpusAloneUsesNoGpuHere) {
  const std::vector<UsualClaim> usual = {{.claim = gpus(1), .gpu_models = {"A100"}, .weight = 1},
                                         {.claim = gpus(1), .gpu_models = {"H100"}, .weight = 2},
                                         {.claim = cpus(1), .weight = 1}};
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000}, 8, 64)), 750);
}

TEST(Fragmentation, SmallSharesWeighMore) {
  const std::vector<UsualClaim> usual = {{.claim = gpus(1)}, {.claim = share(250)}};
  // 0.25 to the power of -1.5 is 8; only the share can use the partial device.
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({250}, 8, 64)), 250.0 / 9);
}

TEST(Fragmentation, WhereCpusAreOverbookedAllIsWasted) {
  const std::vector<UsualClaim> usual = {{.claim = gpus(1)}};
  EXPECT_DOUBLE_EQ(waste_of(usual, room_of({1000}, -1, 64)), 1000);
}

TEST(Fragmentation, AShareCompletesADeviceInsteadOfSpoilingTheFullerNode) {
  Nodes nodes = nodes_of({node_of("a", 4), node_of("b", 1)});
  nodes.book({.node = 0, .devices = 0b1000, .share_milli = 500});
  nodes.set_usual_claims({{.claim = gpus(1)}, {.claim = share(500)}});

  const auto placed = place(nodes, gang_of(1, share(500)), Packing::kFragmentation);
  ASSERT_TRUE(placed);
  EXPECT_EQ(nodes.place_of(placed->front()), (TaskPlace{"a", {3}, 500}));
}

TEST(Fragmentation, LeavesTheModelThatOthersAskForByName) {
  Node scarce = node_of("a", 1);
  scarce.gpu_model = "H100";
  Node common = node_of("b", 2);
  common.gpu_model = "T4";
  Nodes nodes = nodes_of({scarce, common});
  nodes.set_usual_claims(
      {{.claim = gpus(1), .weight = 3}, {.claim = gpus(1), .gpu_models = {"H100"}, .weight = 1}});
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1)), Packing::kPack), "a");
  nodes = nodes_of({scarce, common});
  nodes.set_usual_claims(
      {{.claim = gpus(1), .weight = 3}, {.claim = gpus(1), .gpu_models = {"H100"}, .weight = 1}});
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1)), Packing::kFragmentation), "b");
}

TEST(Fragmentation, KeepsCpusWhereGpusAreFree) {
  Nodes nodes = nodes_of({node_of("a", 1, 20), node_of("b", 1, 64)});
  nodes.set_usual_claims({{.claim = gpus(1, 16)}});
  EXPECT_EQ(where(nodes, gang_of(1, cpus(10)), Packing::kPack), "a");
  nodes = nodes_of({node_of("a", 1, 20), node_of("b", 1, 64)});
  nodes.set_usual_claims({{.claim = gpus(1, 16)}});
  EXPECT_EQ(where(nodes, gang_of(1, cpus(10)), Packing::kFragmentation), "b");
}

}  // namespace
}  // namespace muster::schedule
