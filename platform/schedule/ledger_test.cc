#include "schedule/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/test_books.h"

namespace muster::schedule {

namespace {

std::vector<std::string> names(const Ledger& ledger, const std::vector<ProjectIndex>& projects) {
  std::vector<std::string> names;
  for (const ProjectIndex project : projects) names.push_back(ledger.name(project));
  return names;
}

Project project_deserving(const std::string& name, double gpus, const std::string& parent = "") {
  return {
      .name = name, .parent = parent, .quota = {.deserved = {milli(gpus), kUnlimited, kUnlimited}}};
}

TEST(LedgerTree, TakesParentsThatComeAfterTheirChildren) {
  Books books({{"team", 1, {.parent = "dept"}}, {"dept", 2}, {"other", 1}});
  const Ledger& ledger = books.ledger;

  EXPECT_EQ(names(ledger, ledger.children(kNoProject)),
            (std::vector<std::string>{"dept", "other"}));
  EXPECT_EQ(names(ledger, ledger.children(books["dept"])), (std::vector<std::string>{"team"}));
  EXPECT_EQ(ledger.parent(books["team"]), books["dept"]);
  EXPECT_EQ(ledger.parent(books["dept"]), kNoProject);
  EXPECT_EQ(ledger.find("nobody"), kNoProject);
}

TEST(LedgerTree, PutsFaultyProjectsAtTheTop) {
  Ledger ledger;
  ledger.set_projects(
      {project_deserving("a", 1, "b"), project_deserving("b", 1, "a"),
       project_deserving("orphan", 1, "gone"), project_deserving("itself", 1, "itself"),
       project_deserving("child", 1, "a"), project_deserving("a", 7)},
      kDefaultPool);

  EXPECT_EQ(names(ledger, ledger.children(kNoProject)),
            (std::vector<std::string>{"a", "b", "itself", "orphan"}));
  EXPECT_EQ(ledger.parent(ledger.find("child")), ledger.find("a"));
  EXPECT_EQ(ledger.standing(ledger.find("a")).deserved.gpu_milli, 1000);
}

TEST(LedgerTree, IsNotBentIntoACircleByTheSecondOfAName) {
  Ledger ledger;
  ledger.set_projects(
      {project_deserving("a", 1), project_deserving("b", 1, "a"), project_deserving("a", 1, "b")},
      kDefaultPool);
  EXPECT_EQ(ledger.parent(ledger.find("a")), kNoProject);
  EXPECT_EQ(ledger.parent(ledger.find("b")), ledger.find("a"));
}

TEST(LedgerTree, FindsWhereTwoPathsPart) {
  Books books({{"d1", 1},
               {"d2", 1},
               {"a", 1, {.parent = "d1"}},
               {"b", 1, {.parent = "d1"}},
               {"c", 1, {.parent = "d2"}}});
  const auto apart = [&](const char* one, const char* other) {
    return books.ledger.siblings_above(books[one], books[other]);
  };
  EXPECT_EQ(apart("a", "b"), std::pair(books["a"], books["b"]));
  EXPECT_EQ(apart("a", "c"), std::pair(books["d1"], books["d2"]));
  EXPECT_EQ(apart("a", "d2"), std::pair(books["d1"], books["d2"]));
  EXPECT_EQ(apart("a", "a"), std::pair(kNoProject, kNoProject));
  EXPECT_EQ(apart("a", "d1"), std::pair(kNoProject, kNoProject));
}

TEST(LedgerBooks, CountAtEveryLevelAndUnbookExactly) {
  Books books({{"dept", 2}, {"team", 1, {.parent = "dept"}}});
  const Standing before = books.standing("dept");

  books.runs("team", 2, kPreemptible);
  books.runs("team", 1, kNonPreemptible);

  for (const char* name : {"dept", "team"}) {
    EXPECT_EQ(books.standing(name).allocated.gpu_milli, 3000) << name;
    EXPECT_EQ(books.standing(name).allocated_non_preemptible.gpu_milli, 1000) << name;
    EXPECT_EQ(books.standing(name).requested.gpu_milli, 3000) << name;
  }
  books.ends("team", 1, kNonPreemptible);
  books.ends("team", 2, kPreemptible);
  EXPECT_EQ(books.standing("dept").allocated, before.allocated);
  EXPECT_EQ(books.standing("dept").allocated_non_preemptible, before.allocated_non_preemptible);
  EXPECT_EQ(books.standing("dept").requested, before.requested);
}

TEST(LedgerBooks, NeitherOverflowNorForgetWithAbsurdAmounts) {
  Books books({{"team", 1}});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const Amounts absurd{kMost, kMost, kMost};
  const ProjectIndex team = books["team"];
  for (int i = 0; i < 5; ++i) {
    books.ledger.add_request(team, absurd);
    books.ledger.allocate(team, absurd, kPreemptible);
  }
  EXPECT_EQ(books.standing("team").requested, kBoundless);
  EXPECT_EQ(books.standing("team").allocated, kBoundless);
  books.ledger.settle_fair_shares();
  EXPECT_EQ(books.standing("team").fair_share.gpu_milli, 1000);
  EXPECT_TRUE(books.ledger.order_key(team, absurd).over_deserved_with_job);
  EXPECT_FALSE(books.ledger.may_reclaim(team, absurd, kPreemptible));

  books.ledger.allocate(team, gpus(1), kPreemptible);
  for (int i = 0; i < 5; ++i) {
    books.ledger.remove_request(team, absurd);
    books.ledger.release(team, absurd, kPreemptible);
  }
  EXPECT_EQ(books.standing("team").requested, kNothing);
  EXPECT_EQ(books.standing("team").allocated, gpus(1));
}

TEST(LedgerBooks, StayWhenProjectsChange) {
  Ledger ledger;
  ledger.set_projects({project_deserving("a", 1), project_deserving("b", 1)}, kDefaultPool);
  const ProjectIndex a = ledger.find("a");
  ledger.allocate(a, gpus(1), kPreemptible);
  ledger.allocate(a, gpus(1), kNonPreemptible);
  ledger.add_request(a, gpus(3));

  ledger.set_projects(
      {project_deserving("dept", 1), project_deserving("b", 1), project_deserving("a", 2, "dept")},
      kDefaultPool);

  EXPECT_EQ(ledger.find("a"), a);
  EXPECT_EQ(ledger.standing(ledger.find("dept")).allocated, gpus(2));
  EXPECT_EQ(ledger.standing(ledger.find("dept")).allocated_non_preemptible, gpus(1));
  EXPECT_EQ(ledger.standing(ledger.find("dept")).requested, gpus(3));
  EXPECT_EQ(ledger.standing(a).deserved.gpu_milli, 2000);
}

TEST(LedgerBooks, OfARemovedProjectCountNowhereAndCanBeReleased) {
  Ledger ledger;
  ledger.set_total(gpus(4));
  ledger.set_projects({project_deserving("dept", 2), project_deserving("a", 1, "dept")},
                      kDefaultPool);
  const ProjectIndex a = ledger.find("a");
  ledger.add_request(a, gpus(3));
  ledger.allocate(a, gpus(3), kPreemptible);

  ledger.set_projects({project_deserving("dept", 2)}, kDefaultPool);
  EXPECT_EQ(ledger.find("a"), kNoProject);
  EXPECT_EQ(ledger.standing(ledger.find("dept")).allocated, kNothing);
  ledger.release(a, gpus(1), kPreemptible);

  ledger.set_projects({project_deserving("dept", 2), project_deserving("a", 1, "dept")},
                      kDefaultPool);
  EXPECT_EQ(ledger.find("a"), a);
  EXPECT_EQ(ledger.standing(ledger.find("dept")).allocated, gpus(2));
}

TEST(LedgerQuotas, AreThoseOfThePool) {
  Project a = project_deserving("a", 1);
  a.quotas["fast"].deserved = gpus(5);
  Ledger ledger;

  ledger.set_projects({a}, kDefaultPool);
  EXPECT_EQ(ledger.standing(ledger.find("a")).deserved.gpu_milli, 1000);

  ledger.set_projects({a}, "fast");
  EXPECT_EQ(ledger.standing(ledger.find("a")).deserved.gpu_milli, 5000);
}

TEST(LedgerFairShares, AreSharedOutLevelByLevel) {
  Books books({.gpus = 12}, {{"d1", 4, {.weight = 1}},
                             {"d2", 4, {.weight = 3}},
                             {"a", 1, {.weight = 1, .parent = "d1"}},
                             {"b", 1, {.weight = 2, .parent = "d1"}},
                             {"c", 0, {.weight = 1, .parent = "d2"}}});
  books.waits("a", 10);
  books.waits("b", 10);
  books.waits("c", 20);
  books.settle();

  EXPECT_EQ(books.fair("d1"), 5);  // 4 deserved and 1 of the 4 left
  EXPECT_EQ(books.fair("d2"), 7);
  EXPECT_EQ(books.fair("a"), 2);
  EXPECT_EQ(books.fair("b"), 3);
  EXPECT_EQ(books.fair("c"), 7);
}

TEST(LedgerFairShares, FollowRequestsTotalsQuotasAndDecay) {
  std::vector<Project> projects = {project_deserving("a", 0), project_deserving("b", 0)};
  projects[1].past_use.gpu_milli = 1000;
  Ledger ledger;
  ledger.set_total(gpus(4));
  ledger.set_projects(projects, kDefaultPool);
  const auto shares = [&] {
    ledger.settle_fair_shares();
    return std::pair(ledger.standing(ledger.find("a")).fair_share.gpu_milli,
                     ledger.standing(ledger.find("b")).fair_share.gpu_milli);
  };

  EXPECT_EQ(shares(), std::pair(int64_t{0}, int64_t{0}));
  ledger.add_request(ledger.find("a"), gpus(9));
  EXPECT_EQ(shares(), std::pair(int64_t{4000}, int64_t{0}));
  ledger.add_request(ledger.find("b"), gpus(9));
  EXPECT_EQ(shares(), std::pair(int64_t{2000}, int64_t{2000}));
  ledger.set_total(gpus(6));
  EXPECT_EQ(shares(), std::pair(int64_t{3000}, int64_t{3000}));
  ledger.set_decay(0.5);
  EXPECT_EQ(shares(), std::pair(int64_t{5000}, int64_t{1000}));  // weights 0.75 and 0.25
  ledger.set_decay(0);
  projects[0].quota.deserved = gpus(4);
  ledger.set_projects(projects, kDefaultPool);
  EXPECT_EQ(shares(), std::pair(int64_t{5000}, int64_t{1000}));
  ledger.remove_request(ledger.find("a"), gpus(7));
  EXPECT_EQ(shares(), std::pair(int64_t{2000}, int64_t{4000}));
}

TEST(LedgerFairShares, OfEveryResourceByItself) {
  Project one = project_deserving("one", 0);
  Project other = project_deserving("other", 0);
  one.quota.deserved = {1000, 3000, 0};
  other.quota.deserved = {1000, kUnlimited, 0};
  Ledger ledger;
  ledger.set_total({4000, 8000, 101});
  ledger.set_projects({one, other}, kDefaultPool);
  ledger.add_request(ledger.find("one"), {4000, 8000, 500});
  ledger.add_request(ledger.find("other"), {1000, 7000, 500});
  ledger.settle_fair_shares();

  EXPECT_EQ(ledger.standing(ledger.find("one")).fair_share, (Amounts{3000, 3000, 51}));
  EXPECT_EQ(ledger.standing(ledger.find("other")).fair_share, (Amounts{1000, 7000, 50}));
}

// The incremental answer equals the answer of a ledger that gets everything at once.
TEST(LedgerFairShares, DoNotDependOnHowOneGotThere) {
  const std::vector<ProjectLine> lines = {{"d1", 3, {.weight = 2}},
                                          {"d2", 5, {.weight = 1}},
                                          {"a", 2, {.weight = 1, .parent = "d1"}},
                                          {"b", 2, {.weight = 3, .parent = "d1"}},
                                          {"c", 1, {.weight = 1, .parent = "d2"}},
                                          {"e", 1, {.weight = 1, .parent = "d2"}}};
  const std::vector<std::string> leaves = {"a", "b", "c", "e"};
  Books grown({.gpus = 16}, lines);
  std::vector<int> requests(leaves.size(), 0);
  unsigned state = 1;
  for (int step = 0; step < 300; ++step) {
    state = state * 1664525 + 1013904223;
    const size_t leaf = (state >> 8) % leaves.size();
    const int request = static_cast<int>((state >> 16) % 12);
    grown.ledger.remove_request(grown[leaves[leaf]], gpus(requests[leaf]));
    grown.ledger.add_request(grown[leaves[leaf]], gpus(request));
    requests[leaf] = request;
    if (step % 3 == 0) grown.settle();
    if (step % 7 != 0) continue;

    grown.settle();
    Books fresh({.gpus = 16}, lines);
    for (size_t i = 0; i < leaves.size(); ++i) fresh.waits(leaves[i], requests[i]);
    fresh.settle();
    for (const ProjectLine& line : lines) {
      ASSERT_EQ(grown.fair(line.name), fresh.fair(line.name)) << line.name << ", step " << step;
    }
  }
}

TEST(LedgerFairShares, SettleTenThousandProjects) {
  std::vector<Project> projects;
  for (int i = 0; i < 10'000; ++i) {
    projects.push_back(project_deserving("p" + std::to_string(i), i % 3));
    projects.back().sequence = static_cast<uint64_t>(i);
    projects.back().quota.weight = 1 + i % 7;
  }
  Ledger ledger;
  ledger.set_total(gpus(80'000));
  ledger.set_projects(projects, kDefaultPool);
  for (int i = 0; i < 10'000; ++i) ledger.add_request(i, gpus(i % 40));
  ledger.settle_fair_shares();

  int64_t shared_out = 0;
  for (int i = 0; i < 10'000; ++i) shared_out += ledger.standing(i).fair_share.gpu_milli;
  EXPECT_EQ(shared_out, 80'000'000);
}

}  // namespace

}  // namespace muster::schedule
