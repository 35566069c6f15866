#include "world/group.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <utility>

#include "world/join.h"

namespace muster::collective {
namespace {

using testing::ample_memory;
using testing::Placement;
using testing::spawn_worlds;

TEST(Group, NumbersItsRanksInTheOrderOfTheList) {
  constexpr std::array kList = {3, 0, 2};
  for (const Placement placement : {Placement::one_host(), Placement{2}, Placement::host_each()}) {
    spawn_worlds(4, placement, [&](World& world) {
      const auto place = std::ranges::find(kList, world.rank) - kList.begin();
      if (place == 3) return;
      for (int again = 0; again < 3; ++again) {
        const auto group = join_group(world, kList, ample_memory);
        ASSERT_TRUE(group) << group.error().to_string();
        EXPECT_EQ((*group)->rank, place);
        EXPECT_EQ((*group)->size, 3);
        EXPECT_EQ((*group)->hosts, (std::vector<std::string>{"host-3", "host-0", "host-2"}));
      }
    });
  }
}

TEST(Group, OfOneRankNeedsNoOtherRank) {
  spawn_worlds(2, Placement::one_host(), [](World& world) {
    const std::array list = {world.rank};
    const auto group = join_group(world, list, ample_memory);
    ASSERT_TRUE(group);
    EXPECT_EQ((*group)->size, 1);
  });
}

TEST(Group, CanBeMadeFromAGroup) {
  spawn_worlds(4, Placement::one_host(), [](World& world) {
    constexpr std::array kThree = {1, 2, 3};
    constexpr std::array kTwo = {2, 0};
    if (world.rank == 0) return;
    const auto three = join_group(world, kThree, ample_memory);
    ASSERT_TRUE(three) << three.error().to_string();
    if ((*three)->rank == 1) return;
    const auto two = join_group(**three, kTwo, ample_memory);
    ASSERT_TRUE(two) << two.error().to_string();
    EXPECT_EQ((*two)->hosts, (std::vector<std::string>{"host-3", "host-1"}));
  });
}

TEST(Group, WithAnInvalidListIsRejected) {
  spawn_worlds(2, Placement::one_host(), [](World& world) {
    const std::array twice = {world.rank, world.rank};
    const std::array outside = {world.rank, 2};
    const std::array others = {1 - world.rank};
    for (const auto& [list, message] :
         {std::pair<std::span<const int>, std::string>{twice, " twice"},
          {outside, " names rank 2, which is not in a world of 2"},
          {others, " does not name rank " + std::to_string(world.rank) + ", which calls it"}}) {
      const auto group = join_group(world, list, ample_memory);
      ASSERT_FALSE(group);
      EXPECT_EQ(group.error().code, ErrorCode::kBadArgument);
      EXPECT_TRUE(group.error().message.ends_with(message)) << group.error().message;
    }
  });
}

TEST(Group, EndsAtOnceWhenTheWorldFails) {
  spawn_worlds(3, Placement::one_host(), [](World& world) {
    constexpr std::array kAll = {0, 1, 2};
    const Error failure{ErrorCode::kSystem, "the disk is on fire"};
    // The last rank never joins.
    if (world.rank == 2) {
      world.monitor->fail(failure);
      return;
    }
    const auto group = join_group(world, kAll, ample_memory);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().message, failure.message);
  });
}

// The first rank has invited the other one to a rendezvous that is closed by then, or the other one
// has waited for an invitation.
TEST(Group, FormsAfterAnAttemptOfOneMemberAlone) {
  constexpr std::array kBoth = {0, 1};
  for (const Placement placement : {Placement::one_host(), Placement::host_each()}) {
    for (const int early : kBoth) {
      std::latch failed(1);
      spawn_worlds(2, placement, [&](World& world) {
        if (world.rank == early) {
          const auto patience = std::exchange(world.options.timeout, std::chrono::milliseconds(50));
          EXPECT_FALSE(join_group(world, kBoth, ample_memory));
          world.options.timeout = patience;
          failed.count_down();
        }
        failed.wait();
        for (int again = 0; again < 2; ++again) {
          const auto group = join_group(world, kBoth, ample_memory);
          ASSERT_TRUE(group) << group.error().to_string();
          EXPECT_EQ((*group)->rank, world.rank);
        }
      });
    }
  }
}

TEST(Group, OfOneListIsJoinedByOneThreadAtATime) {
  constexpr std::array kBoth = {1, 0};
  std::atomic<int> joined = 0;
  spawn_worlds(2, Placement::one_host(), [&](World& world) {
    testing::on_threads(4, [&](int) {
      const auto group = join_group(world, kBoth, ample_memory);
      ASSERT_TRUE(group) << group.error().to_string();
      ++joined;
    });
  });
  EXPECT_EQ(joined, 8);
}

TEST(Group, NamesTheFirstRankIfItDoesNotJoin) {
  spawn_worlds(
      2, Placement::one_host(),
      [](World& world) {
        constexpr std::array kAll = {0, 1};
        if (world.rank == 0) return;
        const auto group = join_group(world, kAll, ample_memory);
        ASSERT_FALSE(group);
        EXPECT_EQ(group.error().message,
                  "rank 0 on host host-0 did not join the group of ranks 0, 1 within 0.5 s");
      },
      std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace muster::collective
