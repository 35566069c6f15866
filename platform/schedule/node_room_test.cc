#include "schedule/node_room.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

TEST(NodeRoom, AShareByMemoryIsRoundedUpToThousandthsOfTheDevice) {
  const auto share_of = [](int64_t requested, int64_t device) {
    const auto need = need_on({.gpu_memory_bytes = requested}, device);
    return need ? need->share_milli : -1;
  };
  EXPECT_EQ(share_of(1, 80 * kGib), 1);
  EXPECT_EQ(share_of(40 * kGib, 80 * kGib), 500);
  EXPECT_EQ(share_of(40 * kGib + 1, 80 * kGib), 501);
  EXPECT_EQ(share_of(80 * kGib, 80 * kGib), 1000);
  EXPECT_EQ(share_of(80 * kGib + 1, 80 * kGib), -1);
  EXPECT_EQ(share_of(1, 0), -1);
  EXPECT_EQ(share_of(int64_t{1} << 61, int64_t{1} << 62), 500);
}

TEST(NodeRoom, WholeGpusNeedDevicesThatAreFree) {
  EXPECT_TRUE(gpus_fit(room_of({1000, 400, 1000}, 4, 16), {.gpus = 2}));
  EXPECT_FALSE(gpus_fit(room_of({1000, 999, 999}, 4, 16), {.gpus = 2}));
  EXPECT_EQ(pick_devices(room_of({1000, 400, 1000, 1000}, 4, 16), {.gpus = 2}), 0b101U);
}

TEST(NodeRoom, AShareNeedsOneDeviceAndTakesTheFullest) {
  EXPECT_FALSE(gpus_fit(room_of({400, 400}, 4, 16), {.share_milli = 500}));
  EXPECT_EQ(pick_devices(room_of({1000, 600, 500, 300}, 4, 16), {.share_milli = 500}), 0b100U);
}

TEST(NodeRoom, EachOtherResourceCanBeTheMissingOne) {
  const NodeRoom room = room_of({1000}, 4, 16);
  EXPECT_TRUE(fits(room, {.gpus = 1, .cpu_milli = 4000, .memory_bytes = 16 * kGib}));
  EXPECT_FALSE(fits(room, {.gpus = 1, .cpu_milli = 4001}));
  EXPECT_FALSE(fits(room, {.gpus = 1, .memory_bytes = 16 * kGib + 1}));
  NodeRoom full = room;
  full.task_slots = 0;
  EXPECT_FALSE(fits(full, {}));
}

TEST(NodeRoom, CountsTheTasksThatFitOneAfterTheOther) {
  const NodeRoom room = room_of({1000, 1000, 1000, 700, 400}, 8, 64);
  NodeRoom two_slots = room;
  two_slots.task_slots = 2;
  EXPECT_EQ(fitting_tasks(room, {.gpus = 1}, 9), 3);
  EXPECT_EQ(fitting_tasks(room, {.gpus = 2}, 9), 1);
  EXPECT_EQ(fitting_tasks(room, {.gpus = 4}, 9), 0);
  EXPECT_EQ(fitting_tasks(room, {.share_milli = 300}, 99), 12);
  EXPECT_EQ(fitting_tasks(room, {.gpus = 1, .cpu_milli = 4000}, 9), 2);
  EXPECT_EQ(fitting_tasks(room, {.cpu_milli = 3000}, 9), 2);
  EXPECT_EQ(fitting_tasks(room, {.gpus = 1, .memory_bytes = 64 * kGib}, 9), 1);
  EXPECT_EQ(fitting_tasks(room, {}, 9), 9);
  EXPECT_EQ(fitting_tasks(two_slots, {.gpus = 1}, 9), 2);
}

TEST(NodeRoom, NothingFitsOnAnOverbookedNode) {
  NodeUse use;
  use.add({.devices = 0b1100, .share_milli = 1000, .cpu_milli = 9000});
  NodeRoom room;
  free_room(node_of("n", 2, 8), use, room);

  EXPECT_EQ(room.devices, (std::vector<int>{1000, 1000, -1000, -1000}));
  EXPECT_EQ(room.gpu_milli, 0);
  EXPECT_EQ(room.cpu_milli, -1000);
  EXPECT_FALSE(fits(room, {}));
  EXPECT_FALSE(gpus_fit(room, {.gpus = 1}));
}

TEST(NodeRoom, TheCommonRoomIsTheMinimumOfEachDevice) {
  NodeUse now;
  NodeUse later;
  now.add({.devices = 0b01, .share_milli = 300, .cpu_milli = 1000});
  later.add({.devices = 0b10, .share_milli = 700, .memory_bytes = kGib});
  NodeRoom room;
  free_room(node_of("n", 2, 4, 4), now, later, room);

  EXPECT_EQ(room.devices, (std::vector<int>{700, 300}));
  EXPECT_EQ(room.cpu_milli, 3000);
  EXPECT_EQ(room.memory_bytes, 3 * kGib);
}

TEST(NodeRoom, AddingAndRemovingRestoresTheRoom) {
  NodeUse use;
  const Booking booking{.devices = uint64_t{1} << 63, .share_milli = 250, .cpu_milli = 1};
  use.add(booking);
  EXPECT_FALSE(use == NodeUse{});
  use.remove(booking);
  EXPECT_TRUE(use == NodeUse{});
}

}  // namespace
namespace {

double waste_of(const std::vector<UsualClaim>& usual, const NodeRoom& room) {
  Fragmentation fragmentation;
  fragmentation.set(usual);
  return waste(fragmentation.usual_for("A100", 0), room);
}

// The weights are 0.4 for next and 0.6 for fill.
TEST(Fragmentation, CountsGpusThatTheNextTaskAndAStreamOfTasksCannotUse) {
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

TEST(Fragmentation, RequestsForAnotherModelOrForCpusOnlyUseNoGpuOfTheNode) {
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
