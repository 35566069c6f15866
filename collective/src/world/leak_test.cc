// Worlds leave nothing behind when they end: no descriptor, no thread, no mapping.
#include <gtest/gtest.h>
#include <muster/collective/testing/leaks.h>
#include <muster/collective/testing/worlds.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

#include "world/group.h"
#include "world/join.h"

namespace muster::collective {
namespace {

using testing::entries_in;
using testing::Placement;
using testing::spawn_worlds;

int mappings_of_shared_memory() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:muster") != std::string::npos) ++count;
  }
  return count;
}

void join_a_world_and_a_group() {
  spawn_worlds(2, Placement::one_host(), [](World& world) {
    constexpr std::array kTurned = {1, 0};
    ASSERT_TRUE(join_group(world, kTurned, testing::ample_memory));
  });
}

TEST(Leak, AHundredWorldsLeaveNothingBehind) {
  // The first world may load modules that stay: random numbers, the name service.
  join_a_world_and_a_group();
  const auto descriptors = entries_in("/proc/self/fd");
  const auto threads = entries_in("/proc/self/task");
  for (int i = 0; i < 100; ++i) join_a_world_and_a_group();
  EXPECT_EQ(entries_in("/proc/self/fd"), descriptors);
  // A thread that was joined may be listed for a moment longer.
  EXPECT_LE(entries_in("/proc/self/task"), threads + 1);
  EXPECT_EQ(mappings_of_shared_memory(), 0);
}

void fail_to_join_a_world() {
  // A rank that arrives after rank 0 has given up finds no listener, and waits for the whole
  // timeout.
  std::vector<Options> world = testing::world_of(3, std::chrono::milliseconds(1000));
  world[1].size = 4;
  testing::on_threads(3, [&](int rank) {
    EXPECT_FALSE(join(world[static_cast<std::size_t>(rank)], testing::ample_memory));
  });
}

TEST(Leak, AWorldThatFailsToJoinLeavesNothingBehind) {
  // The first world opens the descriptor that takes the places of sockets in forked children.
  fail_to_join_a_world();
  const auto descriptors = entries_in("/proc/self/fd");
  for (int i = 0; i < 10; ++i) fail_to_join_a_world();
  EXPECT_EQ(entries_in("/proc/self/fd"), descriptors);
}

}  // namespace
}  // namespace muster::collective
