#include "parameter_server/clocks.h"

#include <gtest/gtest.h>

namespace muster::parameter_server {
namespace {

constexpr std::optional<std::uint64_t> kUnlimited = std::nullopt;

Clocks with_workers(std::optional<std::uint64_t> bound, int count) {
  Clocks clocks(bound, count);
  for (int worker = 0; worker < count; ++worker) clocks.join(worker);
  return clocks;
}

void advance(Clocks& clocks, int worker, int steps) {
  for (int i = 0; i < steps; ++i) clocks.advance(worker);
}

TEST(Clocks, AWorkerWaitsWhileItIsMoreThanTheBoundAhead) {
  struct Row {
    std::optional<std::uint64_t> bound;
    int ahead;
    bool may_proceed;
  };
  for (const Row& row : {Row{0, 0, true}, Row{0, 1, false}, Row{1, 1, true}, Row{1, 2, false},
                         Row{3, 3, true}, Row{3, 4, false}, Row{kUnlimited, 1'000, true}}) {
    Clocks clocks = with_workers(row.bound, 3);
    advance(clocks, 1, row.ahead);
    EXPECT_EQ(clocks.may_proceed(1), row.may_proceed) << row.ahead << " ahead";
    EXPECT_TRUE(clocks.may_proceed(0));
    EXPECT_TRUE(clocks.may_proceed(2));
  }
}

TEST(Clocks, TheSlowestLetsAllOthersGoOn) {
  Clocks clocks = with_workers(0, 3);
  clocks.advance(0);
  clocks.advance(1);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.advance(2);
  EXPECT_TRUE(clocks.may_proceed(0));
  EXPECT_TRUE(clocks.may_proceed(1));
}

TEST(Clocks, WhoIsGoneHoldsNobodyUp) {
  Clocks clocks = with_workers(1, 3);
  advance(clocks, 0, 5);
  advance(clocks, 1, 4);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.leave(2);
  EXPECT_TRUE(clocks.may_proceed(0));
  EXPECT_FALSE(clocks.may_proceed(2));
}

TEST(Clocks, WhoComesLateBeginsWithTheSlowest) {
  Clocks clocks(0, 0);
  EXPECT_EQ(clocks.join(0), 0U);
  EXPECT_EQ(clocks.join(1), 0U);
  advance(clocks, 0, 7);
  advance(clocks, 1, 5);
  EXPECT_EQ(clocks.join(2), 5U);
}

TEST(Clocks, WhoComesWhenAllAreGoneGoesOnWhereTheyWere) {
  Clocks clocks(0, 0);
  clocks.join(0);
  advance(clocks, 0, 7);
  clocks.leave(0);
  EXPECT_EQ(clocks.join(1), 7U);
}

TEST(Clocks, NobodyBeginsBeforeAllWhoAreExpectedHaveCome) {
  Clocks clocks(kUnlimited, 2);
  clocks.join(0);
  EXPECT_FALSE(clocks.is_complete());
  EXPECT_FALSE(clocks.may_proceed(0));
  // The same worker once more is no other.
  clocks.leave(0);
  clocks.join(0);
  EXPECT_FALSE(clocks.may_proceed(0));
  clocks.join(1);
  EXPECT_TRUE(clocks.may_proceed(0));
  clocks.leave(1);
  EXPECT_TRUE(clocks.may_proceed(0));
}

}  // namespace
}  // namespace muster::parameter_server
