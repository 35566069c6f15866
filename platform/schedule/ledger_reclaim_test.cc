#include <gtest/gtest.h>

#include "schedule/test_books.h"

namespace muster::schedule {

namespace {

// Only the part of an elastic gang over its quota is taken: the ledger refuses the next eviction.
TEST(LedgerReclaim, StopsAtTheShareThatTheVictimMayKeep) {
  Books books({.gpus = 4}, {{"q0", 1, {.weight = 1}}, {"q1", 1, {.weight = 1}}});
  books.runs("q0", 4, kPreemptible);
  books.waits("q1", 2);
  books.settle();
  const auto may_take = [&] { return books.ledger.may_take(books["q1"], gpus(2), books["q0"]); };

  EXPECT_TRUE(may_take());
  books.ledger.release(books["q0"], gpus(1), kPreemptible);
  EXPECT_TRUE(may_take());
  books.ledger.release(books["q0"], gpus(1), kPreemptible);
  EXPECT_FALSE(may_take());  // both have two now
}

TEST(LedgerReclaim, NeverTakesFromItself) {
  Books books({.gpus = 4}, {{"dept", 0}, {"q0", 1, {.parent = "dept"}}});
  books.runs("q0", 4, kPreemptible);
  books.settle();
  EXPECT_FALSE(books.ledger.may_take(books["q0"], gpus(1), books["q0"]));
  EXPECT_FALSE(books.ledger.may_take(books["q0"], gpus(1), books["dept"]));
}

TEST(LedgerReclaim, LooksOnlyAtResourcesThatAreAskedFor) {
  Ledger ledger;
  ledger.set_total({4000, 8000, kUnlimited});
  const Quota quota{.deserved = {2000, 4000, kUnlimited}};
  ledger.set_projects({{.name = "q0", .quota = quota}, {.name = "q1", .quota = quota}},
                      kDefaultPool);
  ledger.add_request(0, {2000, 8000, 5});
  ledger.allocate(0, {2000, 8000, 0}, kPreemptible);  // over in CPUs alone
  ledger.add_request(1, {2000, 4000, 0});
  ledger.settle_fair_shares();

  EXPECT_FALSE(ledger.may_take(1, gpus(1), 0));
  EXPECT_TRUE(ledger.may_take(1, {1000, 1000, 0}, 0));
  EXPECT_FALSE(ledger.may_take(1, kNothing, 0));
  EXPECT_TRUE(ledger.may_reclaim(0, {0, 0, 5}, kPreemptible));
  EXPECT_FALSE(ledger.may_reclaim(0, {0, 1, 0}, kPreemptible));
}

// A project that exceeds its bound in one requested resource can be a victim of any reclaimer.
TEST(LedgerReclaim, ReclaimsFromAProjectAboveItsBoundInAnyRequestedResource) {
  Ledger ledger;
  ledger.set_total({4000, 8000, kUnlimited});
  const Quota quota{.deserved = {0, 2000, kUnlimited}};
  ledger.set_projects({{.name = "q0", .quota = quota}, {.name = "q1", .quota = quota}},
                      kDefaultPool);
  for (const ProjectIndex project : {0, 1}) ledger.add_request(project, {4000, 4000, 0});
  ledger.settle_fair_shares();
  ledger.allocate(0, {3000, 1000, 0}, kPreemptible);

  EXPECT_TRUE(ledger.may_take(1, {1000, 1000, 0}, 0));
  ledger.release(0, {1000, 0, 0}, kPreemptible);
  EXPECT_FALSE(ledger.may_take(1, {1000, 1000, 0}, 0));
  // Exceeding the quota is enough for a reclaimer that stays within its own quota.
  ledger.allocate(0, {0, 2000, 0}, kPreemptible);
  EXPECT_TRUE(ledger.may_take(1, {0, 1000, 1}, 0));
  EXPECT_FALSE(ledger.may_take(1, {0, 3000, 1}, 0));
}

// After the request is booked, a reclaimer above its fair share must have a lower proportion of its
// share than the victim.
TEST(LedgerReclaim, IsFairUnlessTheReclaimerComesOutAhead) {
  struct Row {
    const char* name;
    double d1 = 0;  ///< held below d1 after the request is booked; both have a fair share of 4
    double d2 = 0;
    bool fair = false;
  };
  for (const Row& row :
       {Row{"within its share", 4, 1, true}, Row{"above, but less so", 5, 6, true},
        Row{"above, as the other", 5, 5, false}, Row{"above alone", 5, 3, false}}) {
    SCOPED_TRACE(row.name);
    Books books({.gpus = 8}, {{"d1", 4, {.weight = 1}},
                              {"d2", 4, {.weight = 1}},
                              {"q1", 4, {.weight = 1, .parent = "d1"}},
                              {"q2", 4, {.weight = 1, .parent = "d2"}}});
    books.waits("q1", 8);
    books.waits("q2", 8);
    books.settle();
    books.ledger.allocate(books["q1"], gpus(row.d1), kPreemptible);
    books.ledger.allocate(books["q2"], gpus(row.d2), kPreemptible);
    EXPECT_EQ(books.ledger.is_fair_between(books["q1"], gpus(1), books["q2"]), row.fair);
  }
}

TEST(LedgerReclaim, ADepartmentOverItsFairShareMayNotTakeMore) {
  Books books({.gpus = 8}, {{"d1", 2, {.weight = 2}},
                            {"d2", 2, {.weight = 2}},
                            {"q0", 1, {.weight = 1, .parent = "d1"}},
                            {"q1", 1, {.weight = 1, .parent = "d1"}},
                            {"q2", 1, {.weight = 1, .parent = "d2"}}});
  books.runs("q0", 4, kPreemptible);  // all of the fair share of its department
  books.runs("q2", 4, kPreemptible);
  books.waits("q1", 1);
  books.settle();
  ASSERT_TRUE(books.ledger.may_reclaim(books["q1"], gpus(1), kPreemptible));
  EXPECT_FALSE(books.ledger.may_take(books["q1"], gpus(1), books["q2"]));
  EXPECT_TRUE(books.ledger.may_take(books["q1"], gpus(1), books["q0"]));

  books.ledger.allocate(books["q1"], gpus(1), kPreemptible);
  books.ledger.release(books["q2"], gpus(1), kPreemptible);
  EXPECT_FALSE(books.ledger.is_fair_between(books["q1"], gpus(1), books["q2"]));
  books.ledger.allocate(books["q2"], gpus(1), kPreemptible);
  books.ledger.release(books["q0"], gpus(1), kPreemptible);
  EXPECT_TRUE(books.ledger.is_fair_between(books["q1"], gpus(1), books["q0"]));
}

TEST(LedgerReclaim, DoesNotCompareTheUnlimitedWithTheUnlimited) {
  const auto is_fair = [](double deserved_of_other) {
    Books books({.gpus = 4}, {{"dept", 2},
                              {"q0", -1, {.parent = "dept"}},
                              {"q1", deserved_of_other, {.parent = "dept"}}});
    books.runs("q0", 3, kPreemptible);  // more than the department's 2
    books.runs("q1", 1, kPreemptible);
    books.settle();
    return books.ledger.is_fair_between(books["q0"], gpus(1), books["q1"]);
  };
  EXPECT_TRUE(is_fair(-1));
  EXPECT_FALSE(is_fair(1));
}

TEST(LedgerReclaim, ASiblingWithoutAShareDoesNotStandInTheWay) {
  Books books({.gpus = 2}, {{"q0", 1}, {"q1", 0}});
  books.runs("q0", 2, kPreemptible);
  books.settle();
  EXPECT_TRUE(books.ledger.is_fair_between(books["q0"], gpus(1), books["q1"]));
}

// Reclaims as long as the ledger permits it. This must end, and then every project must have at
// least its quota.
TEST(LedgerReclaim, EndsAndLeavesEverybodyItsQuota) {
  unsigned state = 7;
  const auto draw = [&](unsigned most) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % (most + 1);
  };
  for (int round = 0; round < 500; ++round) {
    constexpr int kTotal = 12;
    const std::vector<std::string> names = {"a", "b", "c"};
    std::vector<ProjectLine> lines;
    for (const std::string& name : names) {
      lines.push_back({name, static_cast<double>(draw(4)), {.weight = 1.0 + draw(2)}});
    }
    Books books({.gpus = kTotal}, lines);
    std::vector<int> requests;
    for (const std::string& name : names) {
      requests.push_back(static_cast<int>(draw(kTotal)));
      books.waits(name, requests.back());
    }
    books.settle();
    int free = kTotal;
    const auto held = [&](size_t i) { return books.standing(names[i]).allocated.gpu_milli / 1000; };
    for (; free > 0; --free) {  // the first project gets it, regardless of shares
      const size_t i = draw(2);
      if (held(i) < requests[i])
        books.ledger.allocate(books[names[i]], gpus(1), kPreemptible);
      else
        break;
    }

    int moves = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < names.size(); ++i) {
        for (size_t j = 0; j < names.size(); ++j) {
          const ProjectIndex taker = books[names[i]];
          const ProjectIndex loser = books[names[j]];
          if (held(i) >= requests[i] || held(j) == 0 ||
              !books.ledger.may_reclaim(taker, gpus(1), kPreemptible) ||
              !books.ledger.may_take(taker, gpus(1), loser)) {
            continue;
          }
          books.ledger.release(loser, gpus(1), kPreemptible);
          books.ledger.allocate(taker, gpus(1), kPreemptible);
          ASSERT_TRUE(books.ledger.is_fair_between(taker, gpus(1), loser));
          ASSERT_GE(held(j), std::min<int64_t>(requests[j],
                                               books.standing(names[j]).deserved.gpu_milli / 1000));
          moved = true;
          ASSERT_LT(++moves, 100) << "round " << round;
        }
      }
    }
  }
}

}  // namespace

}  // namespace muster::schedule
