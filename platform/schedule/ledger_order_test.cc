// The order in which projects are served, from the ledger alone: each rule by itself, then
// scenarios in which the order decides.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/test_books.h"

namespace muster::schedule {

namespace {

struct Next {
  std::string project;
  double job = 0;  ///< GPUs of the gang at its head
};

/// The names in the order in which they are served.
std::vector<std::string> order_of(Books& books, std::vector<Next> heads) {
  books.settle();
  std::stable_sort(heads.begin(), heads.end(), [&](const Next& one, const Next& other) {
    return books.ledger.order_key(books[one.project], gpus(one.job)) <
           books.ledger.order_key(books[other.project], gpus(other.job));
  });
  std::vector<std::string> names;
  for (const Next& head : heads) names.push_back(head.project);
  return names;
}

using Order = std::vector<std::string>;

TEST(LedgerOrder, ServesProjectsThatStayWithinTheirQuotaFirst) {
  Books books({.gpus = 4}, {{"q0", 1, {.priority = 200}}, {"q1", 2}});
  books.runs("q0", 1, kPreemptible);
  books.runs("q1", 1, kPreemptible);
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 1}}), (Order{"q1", "q0"}));
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 2}}), (Order{"q0", "q1"}));  // both exceed it
}

TEST(LedgerOrder, ThenThePriorityOfTheProject) {
  Books books({.gpus = 1}, {{"q0", 1}, {"q1", 1, {.priority = 101}}});
  books.waits("q0", 1);
  books.waits("q1", 1);
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 1}}), (Order{"q1", "q0"}));
}

TEST(LedgerOrder, ThenServesProjectsWithAFairShareOfTheResource) {
  Books books({.gpus = 1}, {{"q0", 0}, {"q1", 1}});
  books.waits("q0", 1);
  books.waits("q1", 2);
  // With the job both are over their quotas, and q1 is further over; but q0 has no share at all.
  EXPECT_EQ(order_of(books, {{"q0", 0.5}, {"q1", 2}}), (Order{"q1", "q0"}));
  EXPECT_TRUE(books.ledger.order_key(books["q0"], gpus(0.5)).uses_resource_without_share);
  EXPECT_GT(books.ledger.order_key(books["q0"], gpus(0.5)).dominant_share_with_job, 1000);
  EXPECT_FALSE(books.ledger.order_key(books["q0"], kNothing).uses_resource_without_share);
}

TEST(LedgerOrder, ThenTheSmallerDominantShareWithTheJob) {
  Books books({.gpus = 1}, {{"q0", 1}, {"q1", 2}});
  books.waits("q0", 1);
  books.waits("q1", 1);
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 1}}), (Order{"q1", "q0"}));
}

TEST(LedgerOrder, ThenTheSmallerDominantShareWithoutIt) {
  // q0 holds 2 of 3 and requests 1; q1 holds 0 of 2 and requests 2: both reach their share.
  Books books({.gpus = 4}, {{"q0", 3}, {"q1", 2}});
  books.runs("q0", 2, kPreemptible);
  books.waits("q0", 1);
  books.waits("q1", 2);
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 2}}), (Order{"q1", "q0"}));
}

TEST(LedgerOrder, ThenTheWeakerThenTheOlder) {
  Books books({.gpus = 8}, {{"q0", 4}, {"q1", 2}, {"q2", 2}, {"all", -1}});
  for (const char* name : {"q0", "q1", "q2", "all"}) books.waits(name, 4);
  EXPECT_EQ(order_of(books, {{"all", 0}, {"q2", 0}, {"q1", 0}, {"q0", 0}}),
            (Order{"q1", "q2", "q0", "all"}));
}

TEST(LedgerOrder, WeighsTheLargestShareOverTheResources) {
  Ledger ledger;
  ledger.set_total({8000, 100'000, 1000});
  Project one{.name = "one", .quota = {.deserved = {4000, 50'000, 500}}};
  ledger.set_projects({one}, kDefaultPool);
  ledger.allocate(0, {1000, 25'000, 100}, kPreemptible);

  EXPECT_DOUBLE_EQ(ledger.order_key(0, kNothing).dominant_share, 0.5);
  EXPECT_DOUBLE_EQ(ledger.order_key(0, {2000, 0, 0}).dominant_share_with_job, 0.75);
  EXPECT_DOUBLE_EQ(ledger.order_key(0, {0, 0, 400}).dominant_share_with_job, 1.0);
  EXPECT_TRUE(ledger.order_key(0, {0, 0, 401}).over_deserved_with_job);
}

TEST(LedgerOrder, MeasuresTheUnlimitedByTheTotal) {
  Books books({.gpus = 8}, {{"q0", -1}});
  books.runs("q0", 2, kPreemptible);
  books.settle();
  const OrderKey key = books.ledger.order_key(books["q0"], gpus(100));
  EXPECT_DOUBLE_EQ(key.dominant_share, 0.25);
  EXPECT_FALSE(key.over_deserved_with_job);
}

TEST(LedgerOrder, SubtractsProspectiveVictims) {
  Books books({.gpus = 4}, {{"q0", 2}});
  books.runs("q0", 2, kPreemptible);
  books.settle();
  EXPECT_TRUE(books.ledger.order_key(books["q0"], gpus(1)).over_deserved_with_job);
  EXPECT_FALSE(books.ledger.order_key(books["q0"], gpus(1) - gpus(1)).over_deserved_with_job);
}

TEST(LedgerOrder, ServesProjectsOverTheirFairShareOfEverythingLast) {
  Ledger ledger;
  ledger.set_total({4000, 4000, 4000});
  const Quota quota{.deserved = {1000, 1000, 1000}};
  ledger.set_projects(
      {{.name = "over", .priority = 900, .quota = quota}, {.name = "partly", .quota = quota}},
      kDefaultPool);
  for (const ProjectIndex project : {0, 1}) ledger.add_request(project, {9000, 9000, 9000});
  ledger.settle_fair_shares();
  ledger.allocate(ledger.find("over"), {3500, 3500, 3500}, kPreemptible);
  ledger.allocate(ledger.find("partly"), {3500, 3500, 1000}, kPreemptible);

  EXPECT_TRUE(ledger.order_key(ledger.find("over"), kNothing).over_fair_share);
  EXPECT_FALSE(ledger.order_key(ledger.find("partly"), kNothing).over_fair_share);
  EXPECT_LT(ledger.order_key(ledger.find("partly"), kNothing),
            ledger.order_key(ledger.find("over"), kNothing));
}

// Scenarios 1, 3 and 4 of the list to implement first.
TEST(LedgerOrder, AlternatesUntilBothAreAtTheirQuotas) {
  Books books({.gpus = 4}, {{"q0", 1}, {"q1", 1}});
  books.runs("q0", 1, kPreemptible);
  books.waits("q0", 1);
  books.waits("q1", 3);
  Order served;
  for (int i = 0; i < 3; ++i) {
    served.push_back(order_of(books, {{"q0", 1}, {"q1", 1}}).front());
    books.ledger.allocate(books[served.back()], gpus(1), kPreemptible);
  }
  EXPECT_EQ(served, (Order{"q1", "q0", "q1"}));
}

TEST(LedgerOrder, PrefersTheSmallJobThatStaysWithinQuota) {
  Books books({.gpus = 4}, {{"q0", 2}, {"q1", 2}});
  books.runs("q0", 1, kPreemptible);
  books.runs("q1", 1, kPreemptible);
  EXPECT_EQ(order_of(books, {{"q0", 2}, {"q1", 1}}), (Order{"q1", "q0"}));
}

TEST(LedgerOrder, PrefersProjectsWithAQuota) {
  Books books({.gpus = 1}, {{"q0", 0}, {"q1", 1}});
  books.waits("q0", 1);
  books.waits("q1", 1);
  EXPECT_EQ(order_of(books, {{"q0", 1}, {"q1", 1}}), (Order{"q1", "q0"}));
}

// The project of higher priority keeps what it holds over its quota, although it has no share of
// it.
TEST(LedgerOrder, TakesVictimsFromTheLowerPriorityFirst) {
  Books books({.gpus = 4},
              {{"q0", 1, {.weight = 1}}, {"q1", 1, {.weight = 1}}, {"q2", 1, {.priority = 101}}});
  books.runs("q0", 2, kPreemptible);
  books.runs("q2", 2, kPreemptible);
  books.waits("q1", 1);
  EXPECT_EQ(order_of(books, {{"q0", 0}, {"q2", 0}}), (Order{"q2", "q0"}));
}

}  // namespace

}  // namespace muster::schedule
