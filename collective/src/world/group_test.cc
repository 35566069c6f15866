#include "world/group.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <utility>

#include "transport/test_deadline.h"
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

TEST(Group, OfSomeRanksHasASmallArenaUnlessTheSizeOfArenasIsSet) {
  spawn_worlds(3, Placement::one_host(), [](World& world) {
    constexpr std::array kTwo = {0, 1};
    constexpr std::array kAll = {0, 1, 2};
    constexpr std::uint64_t kLarge = std::uint64_t{5} << 30;
    const auto memory = [](int, std::uint64_t) -> std::uint64_t { return 4096; };
    for (const bool is_default : {true, false}) {
      const std::uint64_t small = is_default ? kMostOfGroupArena : kLarge;
      world.options.arena_bytes = kLarge;
      world.has_default_arena = is_default;
      const auto all = join_group(world, kAll, memory);
      ASSERT_TRUE(all) << all.error().to_string();
      EXPECT_EQ((*all)->options.arena_bytes, kLarge);
      if (world.rank == 2) continue;
      for (World* parent : {&world, all->get()}) {
        const auto two = join_group(*parent, kTwo, memory);
        ASSERT_TRUE(two) << two.error().to_string();
        EXPECT_EQ((*two)->options.arena_bytes, small);
      }
    }
  });
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
  spawn_worlds(2, Placement::one_host(), [](World& world) {
    constexpr std::array kAll = {0, 1};
    if (world.rank == 0) return;
    world.options.timeout = std::chrono::milliseconds(500);
    const auto group = join_group(world, kAll, ample_memory);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().message,
              "rank 0 on host host-0 did not join the group of ranks 0, 1 within 0.5 s");
  });
}

TEST(Group, ExplainsItsNumbersIfAnotherRankDoesNotJoin) {
  spawn_worlds(4, Placement::one_host(), [](World& world) {
    constexpr std::array kAll = {1, 3};
    if (world.rank != 1) return;
    world.options.timeout = std::chrono::milliseconds(500);
    const auto group = join_group(world, kAll, ample_memory);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().message,
              "the group of ranks 1, 3, here numbered 0 to 1, did not form: rank 1 of 2 did not "
              "reach rank 0 on host host-1 within 0.5 s");
  });
}

// Its invitation leads nowhere.
TEST(Group, NamesTheRankOfItsWorldThatIsAtFault) {
  spawn_worlds(3, Placement::one_host(), [](World& world) {
    constexpr std::array kAll = {2, 1};
    if (world.rank == 0) return;
    if (world.rank == 2) {
      auto& list = world.groups->list_of(kAll);
      GroupInvitations::invite(*world.monitor, std::array{1}, list, {0, "127.0.0.1:1"});
      world.monitor->settle();
      return;
    }
    auto& list = world.groups->list_of(kAll);
    ASSERT_TRUE(world.groups->await_invitation(list, *world.monitor, testing::soon()));
    world.options.timeout = std::chrono::milliseconds(100);
    const auto group = join_group(world, kAll, ample_memory);
    ASSERT_FALSE(group);
    EXPECT_TRUE(group.error().message.starts_with(
        "the group of ranks 2, 1, here numbered 0 to 1, did not form: "))
        << group.error().message;
    EXPECT_EQ(group.error().rank, 2);
  });
}

}  // namespace
}  // namespace muster::collective
