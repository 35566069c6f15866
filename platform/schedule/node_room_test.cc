#include "schedule/node_room.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

TEST(NodeRoom, APartByMemoryIsRoundedUpToThousandthsOfTheDevice) {
  const auto share_of = [](int64_t wanted, int64_t device) {
    const auto need = need_on({.gpu_memory_bytes = wanted}, device);
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

TEST(NodeRoom, EachOfTheRestCanBeWhatIsMissing) {
  const NodeRoom room = room_of({1000}, 4, 16);
  EXPECT_TRUE(fits(room, {.gpus = 1, .cpu_milli = 4000, .memory_bytes = 16 * kGib}));
  EXPECT_FALSE(fits(room, {.gpus = 1, .cpu_milli = 4001}));
  EXPECT_FALSE(fits(room, {.gpus = 1, .memory_bytes = 16 * kGib + 1}));
  NodeRoom full = room;
  full.task_slots = 0;
  EXPECT_FALSE(fits(full, {}));
}

TEST(NodeRoom, WhereMoreIsBookedThanThereIsNothingFits) {
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

TEST(NodeRoom, RoomInBothIsTheSmallerOfEachDevice) {
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

TEST(NodeRoom, WhatIsAddedAndRemovedLeavesNoTrace) {
  NodeUse use;
  const Booking booking{.devices = uint64_t{1} << 63, .share_milli = 250, .cpu_milli = 1};
  use.add(booking);
  EXPECT_FALSE(use == NodeUse{});
  use.remove(booking);
  EXPECT_TRUE(use == NodeUse{});
}

}  // namespace
}  // namespace muster::schedule
