#include "muster/collective/communicator.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <tuple>

namespace muster::collective {
namespace {

using testing::spawn_ranks;

constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProduct};

// What rank `rank` contributes at element i: small, of both signs, never 0, different everywhere.
template <typename T>
T contribution(int rank, std::size_t i) {
  const int value = static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) + 1;
  return static_cast<T>(i % 2 == 0 ? value : -value);
}

template <typename T>
std::vector<T> contribution_of(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = contribution<T>(rank, i);
  return values;
}

// The reference: one element over all ranks, in plain C++. Exact in every type, as all values and
// intermediate results are small whole numbers; the average divides once, as ours does.
template <typename T>
T reference(ReduceOp op, int size, std::size_t i) {
  T result = contribution<T>(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const T next = contribution<T>(rank, i);
    if (op == ReduceOp::kSum || op == ReduceOp::kAverage) result += next;
    if (op == ReduceOp::kMin) result = std::min(result, next);
    if (op == ReduceOp::kMax) result = std::max(result, next);
    if (op == ReduceOp::kProduct) result *= next;
  }
  return op == ReduceOp::kAverage ? result / static_cast<T>(size) : result;
}

template <typename T>
void expect_reference(Communicator& world, std::size_t count, ReduceOp op) {
  std::vector<T> values = contribution_of<T>(world.rank(), count);
  const Status done = world.all_reduce(values.data(), count, op);
  ASSERT_TRUE(done) << done.error().to_string();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], reference<T>(op, world.size(), i))
        << to_string(op) << " of " << count << " " << to_string(kDataTypeOf<T>) << " at " << i
        << " on rank " << world.rank() << " of " << world.size();
  }
}

class WorldsOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Size, WorldsOf, ::testing::Range(1, 9),
                         ::testing::PrintToStringParamName());

TEST_P(WorldsOf, ReduceEveryTypeByEveryOperation) {
  spawn_ranks(GetParam(), [](Communicator& world) {
    for (const ReduceOp op : kOps) {
      for (const std::size_t count : {0, 1, 3, 8, 1009}) {
        expect_reference<float>(world, count, op);
        expect_reference<double>(world, count, op);
        expect_reference<std::int32_t>(world, count, op);
        expect_reference<std::int64_t>(world, count, op);
      }
    }
  });
}

// Far more than the sockets hold: a ring whose ranks only sent, or only received, would stop here.
TEST_P(WorldsOf, ReduceBuffersThatNoSocketHolds) {
  spawn_ranks(GetParam(), [](Communicator& world) {
    expect_reference<float>(world, 2'000'003, ReduceOp::kSum);
  });
}

TEST_P(WorldsOf, GetTheSameBitsOnEveryRankAndEveryRun) {
  // Values of very different sizes, whose sum depends on the order.
  constexpr std::size_t kCount = 10'007;
  std::vector<float> first;
  std::mutex mutex;
  for (int run = 0; run < 2; ++run) {
    spawn_ranks(GetParam(), [&](Communicator& world) {
      std::vector<float> values(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double angle = static_cast<double>(i) * (world.rank() + 1);
        values[i] = static_cast<float>(std::exp(10 * std::sin(angle)));
      }
      ASSERT_TRUE(world.all_reduce(values.data(), kCount, ReduceOp::kAverage));
      const std::lock_guard lock(mutex);
      if (first.empty()) first = values;
      // The same bits, not only equal numbers.
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      EXPECT_EQ(std::memcmp(values.data(), first.data(), kCount * sizeof(float)), 0);
    });
  }
}

TEST_P(WorldsOf, BroadcastFromEveryRoot) {
  spawn_ranks(GetParam(), [](Communicator& world) {
    for (int root = 0; root < world.size(); ++root) {
      for (const std::size_t count : {0, 1, 1009, 300'007}) {
        auto values = contribution_of<std::int32_t>(world.rank(), count);
        ASSERT_TRUE(world.broadcast(values.data(), count * sizeof(std::int32_t), root));
        EXPECT_EQ(values, contribution_of<std::int32_t>(root, count));
      }
    }
  });
}

TEST_P(WorldsOf, GatherPartsInTheOrderOfTheRanks) {
  spawn_ranks(GetParam(), [](Communicator& world) {
    for (const std::size_t count : {0, 1, 100'003}) {
      const auto part = contribution_of<std::int64_t>(world.rank(), count);
      std::vector<std::int64_t> all(count * static_cast<std::size_t>(world.size()));
      ASSERT_TRUE(world.all_gather(part.data(), count * sizeof(std::int64_t), all.data()));
      for (int rank = 0; rank < world.size(); ++rank) {
        const auto expected = contribution_of<std::int64_t>(rank, count);
        const auto begin = all.begin() + rank * static_cast<std::ptrdiff_t>(count);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), begin)) << rank;
      }
    }
  });
}

TEST_P(WorldsOf, LeaveABarrierOnlyWhenAllHaveEntered) {
  std::atomic<int> entered = 0;
  spawn_ranks(GetParam(), [&](Communicator& world) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      ASSERT_TRUE(world.barrier());
      EXPECT_GE(entered, round * world.size());
    }
  });
}

TEST(Communicator, KnowsItsPlace) {
  std::atomic<int> ranks = 0;
  spawn_ranks(4, [&](Communicator& world) {
    EXPECT_EQ(world.size(), 4);
    EXPECT_EQ(world.host(), "host-" + std::to_string(world.rank()));
    ranks += 1 << world.rank();
  });
  EXPECT_EQ(ranks, 0b1111);
}

TEST(Communicator, RefusesArgumentsThatCannotBeRight) {
  auto world = Communicator::connect({.rank = 0, .size = 1});
  ASSERT_TRUE(world);
  int x = 0;
  EXPECT_EQ(world->all_reduce(static_cast<float*>(nullptr), 1, ReduceOp::kSum).error().code,
            ErrorCode::kBadArgument);
  EXPECT_EQ(world->broadcast(&x, sizeof x, 1).error().message,
            "the root of a broadcast, rank 1, is not in a world of 1");
  EXPECT_FALSE(world->broadcast(&x, sizeof x, -1));
  EXPECT_FALSE(world->all_gather(&x, sizeof x, nullptr));
}

TEST(Communicator, RefusesOptionsThatNameNoWorld) {
  EXPECT_FALSE(Communicator::connect({}));
  EXPECT_FALSE(Communicator::connect({.rank = 2, .size = 2}));
  EXPECT_EQ(Communicator::connect({.rank = 0, .size = 2}).error().message,
            "the options do not say where the world meets");
}

}  // namespace
}  // namespace muster::collective
