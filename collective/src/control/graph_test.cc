#include "control/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <queue>

namespace muster::collective {
namespace {

// The steps from rank 0 to the furthest rank that is not absent; -1 if one cannot be reached.
int steps_from_0(int size, const std::vector<bool>& absent) {
  std::vector<int> steps(static_cast<std::size_t>(size), -1);
  std::queue<int> reached({0});
  steps[0] = 0;
  int last = 0;
  for (; !reached.empty(); reached.pop()) {
    last = steps[static_cast<std::size_t>(reached.front())];
    for (const int next : neighbours_of(reached.front(), size)) {
      const auto index = static_cast<std::size_t>(next);
      if (absent[index] || steps[index] >= 0) continue;
      steps[index] = last + 1;
      reached.push(next);
    }
  }
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    if (!absent[rank] && steps[rank] < 0) return -1;
  }
  return last;
}

TEST(Graph, OfASmallWorldIsComplete) {
  EXPECT_EQ(neighbours_of(0, 1), std::vector<int>{});
  EXPECT_EQ(neighbours_of(1, 3), (std::vector<int>{0, 2}));
  EXPECT_EQ(neighbours_of(5, kMostComplete).size(), kMostComplete - 1u);
}

TEST(Graph, HasFewNeighboursAndShortWays) {
  for (const int size : {17, 33, 64, 100, 255, 256, 1000, 1024}) {
    const auto log2 = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(size - 1)));
    for (const int rank : {0, 1, size / 2, size - 1}) {
      EXPECT_LE(neighbours_of(rank, size).size(), 2 * log2) << size;
    }
    const int steps = steps_from_0(size, std::vector<bool>(static_cast<std::size_t>(size)));
    EXPECT_GE(steps, 1);
    EXPECT_LE(steps, static_cast<int>(log2)) << size;
  }
}

TEST(Graph, HasEveryConnectionOnBothSides) {
  for (const int size : {17, 64, 100}) {
    for (int rank = 0; rank < size; ++rank) {
      for (const int other : neighbours_of(rank, size)) {
        const std::vector<int> back = neighbours_of(other, size);
        EXPECT_TRUE(std::ranges::binary_search(back, rank)) << rank << " of " << size;
      }
    }
  }
}

TEST(Graph, StaysConnectedWithoutAQuarterOfTheRanks) {
  std::vector<bool> absent(256);
  for (std::size_t rank = 3; rank < absent.size(); rank += 4) absent[rank] = true;
  EXPECT_GT(steps_from_0(256, absent), 0);
}

TEST(Graph, PutsTheNextRankInThePlaceOfAnAbsentOne) {
  const auto nothing = [](int) { return false; };
  EXPECT_EQ(successors_of(60, 64, nothing), (std::vector<int>{0, 4, 12, 28, 61, 62}));
  const auto low = [](int rank) { return rank < 20 || rank == 61; };
  EXPECT_EQ(successors_of(60, 64, low), (std::vector<int>{20, 28, 62}));
  const auto all_others = [](int rank) { return rank != 60; };
  EXPECT_EQ(successors_of(60, 64, all_others), std::vector<int>{});
}

}  // namespace
}  // namespace muster::collective
