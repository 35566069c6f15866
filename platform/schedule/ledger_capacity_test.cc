#include <gtest/gtest.h>

#include "schedule/test_books.h"

namespace muster::schedule {

namespace {

using What = CapacityRefusal::What;

TEST(LedgerCapacity, HoldsLimitsAtEveryLevel) {
  Books books({.gpus = 10}, {{"dept", 1, {.limit = 3}},
                             {"a", 1, {.limit = 2, .parent = "dept"}},
                             {"b", 1, {.parent = "dept"}}});
  books.runs("a", 1, kPreemptible);
  books.runs("b", 1, kPreemptible);

  EXPECT_EQ(books.ledger.refuses(books["a"], gpus(1), kPreemptible), std::nullopt);
  EXPECT_EQ(books.ledger.refuses(books["a"], gpus(2), kPreemptible),
            (CapacityRefusal{What::kLimit, books["a"], Resource::kGpu, 2000, 1000, 2000}));
  EXPECT_EQ(books.ledger.refuses(books["b"], gpus(2), kPreemptible),
            (CapacityRefusal{What::kLimit, books["dept"], Resource::kGpu, 3000, 2000, 2000}));
}

TEST(LedgerCapacity, LimitsNonPreemptibleGangsToTheQuotaAtEveryLevel) {
  Books books({.gpus = 10}, {{"dept", 1}, {"a", 2, {.parent = "dept"}}});
  books.runs("a", 1, kPreemptible);

  EXPECT_EQ(books.ledger.refuses(books["a"], gpus(1), kNonPreemptible), std::nullopt);
  EXPECT_EQ(books.ledger.refuses(books["a"], gpus(2), kNonPreemptible),
            (CapacityRefusal{What::kQuotaOfNonPreemptible, books["dept"], Resource::kGpu, 1000, 0,
                             2000}));
  EXPECT_EQ(books.ledger.refuses(books["a"], gpus(9), kPreemptible), std::nullopt);
}

// Scenario 5: a build counts only against non-preemptible gangs.
TEST(LedgerCapacity, DoesNotCountThePreemptibleAgainstTheNonPreemptible) {
  Books books({.gpus = 5}, {{"q0", 2}});
  books.runs("q0", 2, kPreemptible);
  EXPECT_EQ(books.ledger.refuses(books["q0"], gpus(2), kNonPreemptible), std::nullopt);
  books.runs("q0", 2, kNonPreemptible);
  EXPECT_TRUE(books.ledger.refuses(books["q0"], gpus(2), kNonPreemptible));
}

TEST(LedgerCapacity, NamesTheLimitBeforeTheQuota) {
  Books books({.gpus = 5}, {{"dept", 9, {.limit = 1}}, {"q0", 1, {.parent = "dept"}}});
  EXPECT_EQ(books.ledger.refuses(books["q0"], gpus(2), kNonPreemptible)->what, What::kLimit);
}

TEST(LedgerCapacity, CountsOnlyRequestedResources) {
  Ledger ledger;
  Project one{.name = "one"};
  one.quota.limit = {1000, 2000, kUnlimited};
  ledger.set_projects({one}, kDefaultPool);
  ledger.allocate(0, {0, 5000, 0}, kPreemptible);  // the limit was lowered afterwards

  EXPECT_EQ(ledger.refuses(0, gpus(1), kPreemptible), std::nullopt);
  EXPECT_EQ(ledger.refuses(0, {1000, 1, 0}, kPreemptible),
            (CapacityRefusal{What::kLimit, 0, Resource::kCpu, 2000, 5000, 1}));
}

}  // namespace

}  // namespace muster::schedule
