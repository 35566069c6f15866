#include "shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::digits {
namespace {

constexpr int kDraws = 100'000;

TEST(Random, IsUniform) {
  Random random(1);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
}

TEST(Random, IsNormal) {
  Random random(1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
}

TEST(Random, DrawsEachNumberBelowABoundEquallyOften) {
  Random random(1);
  std::array<int, 7> counts = {};
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(counts.size())];
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 7.0, 500);
}

TEST(Random, IsEqualForEqualSeedsOnly) {
  Random a(1);
  Random b(1);
  Random c(2);
  const double value = a.uniform();
  EXPECT_EQ(value, b.uniform());
  EXPECT_NE(value, c.uniform());
}

}  // namespace
namespace {

struct Case {
  std::size_t images;
  int ranks;
  std::size_t batch;
};

constexpr Case kCases[] = {{1437, 1, 16}, {1437, 2, 16}, {1437, 4, 16}, {7, 3, 2},
                           {8, 4, 100},   {5, 5, 1},     {33, 2, 16}};

TEST(Permutation, HasEachImageOnce) {
  for (const std::size_t count : {0, 1, 2, 1000}) {
    std::vector<std::uint32_t> order = permutation(count, 1, 1);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(order[i], i);
    EXPECT_EQ(order.size(), count);
  }
}

TEST(Permutation, DependsOnlyOnSeedAndEpoch) {
  EXPECT_EQ(permutation(100, 1, 1), permutation(100, 1, 1));
  EXPECT_NE(permutation(100, 1, 1), permutation(100, 1, 2));
  EXPECT_NE(permutation(100, 1, 1), permutation(100, 2, 1));
  EXPECT_NE(permutation(100, 1, 2), permutation(100, 2, 1));
}

// Computed by an independent program. The order is equal on every machine, with any standard
// library.
TEST(Permutation, HasAKnownOrder) {
  EXPECT_EQ(permutation(8, 1, 1), (std::vector<std::uint32_t>{1, 7, 3, 4, 6, 2, 5, 0}));
}

TEST(Shard, GivesEachImageToOneRank) {
  for (const Case& c : kCases) {
    const auto order = permutation(c.images, 1, 1);
    std::multiset<std::uint32_t> seen;
    std::size_t total = 0;
    for (int rank = 0; rank < c.ranks; ++rank) {
      const Shard shard(c.images, rank, c.ranks, 1);
      total += shard.size();
      for (std::size_t step = 0; step < shard.size(); ++step) {
        seen.insert(shard.batch(order, step)[0]);
      }
    }
    EXPECT_EQ(total, c.images);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), c.images);
    EXPECT_EQ(seen.size(), c.images);
  }
}

TEST(Shard, MakesTheSameNumberOfFullStepsOnEveryRank) {
  for (const Case& c : kCases) {
    const auto order = permutation(c.images, 1, 1);
    const std::size_t steps = Shard(c.images, 0, c.ranks, c.batch).steps();
    for (int rank = 0; rank < c.ranks; ++rank) {
      const Shard shard(c.images, rank, c.ranks, c.batch);
      EXPECT_EQ(shard.steps(), steps);
      EXPECT_GE(steps * c.batch, shard.size()) << "every image is used";
      EXPECT_EQ(shard.batch(order, steps - 1).size(), c.batch);
    }
  }
}

TEST(Shard, FillsTheLastBatchWithItsOwnBeginning) {
  const std::vector<std::uint32_t> order = {10, 11, 12, 13, 14};
  const Shard shard(5, 1, 2, 3);  // its images are 11 and 13
  EXPECT_EQ(shard.batch(order, 0), (std::vector<std::uint32_t>{11, 13, 11}));
}

}  // namespace
}  // namespace muster::digits
