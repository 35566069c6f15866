// Evictions for other projects: the scenarios from the documents, small enough to be read.
#include <gtest/gtest.h>

#include "schedule/test_words.h"
#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::elastic;
using testing::evicted;
using testing::gang;
using testing::Ids;
using testing::kBuild;
using testing::node;
using testing::project;
using testing::promised;
using testing::Stage;
using testing::started;

struct ReclaimCase {
  const char* what;
  std::vector<Node> nodes;
  std::vector<Project> projects;
  std::vector<std::pair<Gang, Ids>> running;
  std::vector<Gang> waiting;
  Ids evicted;
  Ids promised;
};

class Reclaim : public ::testing::TestWithParam<ReclaimCase> {};

TEST_P(Reclaim, EvictsTheVictimsOfTheRules) {
  const ReclaimCase& given = GetParam();
  Stage stage(given.nodes, given.projects);
  for (const auto& [one, nodes] : given.running) stage.run(one, nodes);
  for (const Gang& one : given.waiting) stage.wait(one);

  const Plan plan = stage.plan(kReclaim);

  EXPECT_EQ(evicted(plan), given.evicted);
  EXPECT_EQ(promised(plan), given.promised);
  EXPECT_EQ(started(plan), (Ids{})) << "what is evicted has not left yet";
}

std::vector<Project> two(const testing::Share& first, const testing::Share& second) {
  return {project("q0", first), project("q1", second)};
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Reclaim,
    ::testing::Values(ReclaimCase{"the younger of two goes",
                                  {node("n0", 2)},
                                  two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                                  {{gang("a0", "q0", 1), {"n0"}}, {gang("a1", "q0", 1), {"n0"}}},
                                  {gang("b0", "q1", 1), gang("b1", "q1", 1)},
                                  {"a1"},
                                  {"b0"}},
                      ReclaimCase{
                          "never one that is not preemptible",
                          {node("n0", 2)},
                          two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                          {{gang("a0", "q0", 1), {"n0"}}, {gang("a1", "q0", 1, 1, kBuild), {"n0"}}},
                          {gang("b0", "q1", 1)},
                          {"a0"},
                          {"b0"}},
                      ReclaimCase{"nobody where it is fair already",
                                  {node("n0", 2)},
                                  two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                                  {{gang("a0", "q0", 1), {"n0"}}, {gang("b0", "q1", 1), {"n0"}}},
                                  {gang("a1", "q0", 1), gang("b1", "q1", 1)},
                                  {},
                                  {}},
                      ReclaimCase{"a whole gang, though a GPU is left idle",
                                  {node("n0", 2)},
                                  two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                                  {{gang("a0", "q0", 2), {"n0"}}},
                                  {gang("b0", "q1", 1)},
                                  {"a0"},
                                  {"b0"}},
                      ReclaimCase{"nobody for one that is not preemptible and over its quota",
                                  {node("n0", 2)},
                                  two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                                  {{gang("a0", "q0", 2), {"n0"}}},
                                  {gang("b0", "q1", 2, 1, kBuild)},
                                  {},
                                  {}},
                      ReclaimCase{"nobody for one that would be above its fair share",
                                  {node("n0", 10)},
                                  two({.deserved = 2, .weight = 1}, {.deserved = 2, .weight = 2}),
                                  {{gang("a0", "q0", 4), {"n0"}}},
                                  {gang("b0", "q1", 7)},
                                  {},
                                  {}},
                      ReclaimCase{"all of four gangs for one of four tasks",
                                  {node("n0", 1), node("n1", 1), node("n2", 1), node("n3", 1)},
                                  two({.deserved = 0}, {.deserved = 4, .weight = 1}),
                                  {{gang("a0", "q0", 1), {"n0"}},
                                   {gang("a1", "q0", 1), {"n1"}},
                                   {gang("a2", "q0", 1), {"n2"}},
                                   {gang("a3", "q0", 1), {"n3"}}},
                                  {gang("b", "q1", 1, 4)},
                                  {"a0", "a1", "a2", "a3"},
                                  {"b"}},
                      ReclaimCase{"nobody where one of the four may not be taken",
                                  {node("n0", 1), node("n1", 1), node("n2", 1), node("n3", 1)},
                                  two({.deserved = 0}, {.deserved = 4, .weight = 1}),
                                  {{gang("a0", "q0", 1), {"n0"}},
                                   {gang("a1", "q0", 1), {"n1"}},
                                   {gang("a2", "q0", 1), {"n2"}},
                                   {gang("a3", "q0", 1, 1, kBuild), {"n3"}}},
                                  {gang("b", "q1", 1, 4)},
                                  {},
                                  {}},
                      ReclaimCase{"quotas of more than there is are honoured",
                                  {node("n0", 8)},
                                  two({.deserved = 6, .weight = 6}, {.deserved = 5, .weight = 5}),
                                  {{gang("a0", "q0", 8), {"n0"}}},
                                  {gang("b0", "q1", 5)},
                                  {"a0"},
                                  {"b0"}},
                      ReclaimCase{"one task of an elastic gang, not its core",
                                  {node("n0", 2)},
                                  two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}),
                                  {{elastic(gang("a0", "q0", 1, 2), 1), {"n0", "n0"}}},
                                  {gang("b0", "q1", 1)},
                                  {"a0"},
                                  {"b0"}}),
    [](const auto& given) {
      std::string name = given.param.what;
      std::erase_if(name, [](char c) { return c == ','; });
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(ReclaimGang, EvictsAllTasksOfARigidGang) {
  Stage stage({node("n0", 3)}, two({.deserved = 0}, {.deserved = 1}));
  stage.run(gang("a0", "q0", 1, 3), {"n0", "n0", "n0"});
  stage.wait(gang("b0", "q1", 1));

  const Plan plan = stage.plan(kReclaim);

  ASSERT_EQ(evicted(plan), (Ids{"a0"}));
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kReclaimed);
  EXPECT_EQ(plan.evictions[0].by, "b0");
  EXPECT_NE(words::sentence(plan.evictions[0].why).find("quota"), std::string::npos);
}

TEST(ReclaimGang, MovesTheVictimWhereItFindsAnotherPlace) {
  Stage stage({node("n0", 3), node("n1", 2)}, two({.deserved = 2, .weight = 1}, {.deserved = 2}));
  stage.run(gang("a0", "q0", 2), {"n0"});
  stage.run(gang("a1", "q0", 1), {"n1"});
  stage.wait(gang("b0", "q1", 2));

  const Plan plan = stage.plan(kReclaim);

  ASSERT_EQ(evicted(plan), (Ids{"a1"}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kMoved);
  EXPECT_EQ(promised(plan), (Ids{"a1", "b0"}));

  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"a1", "b0"}));
}

TEST(ReclaimGang, LeavesTheDemoOfTheDocumentsAtRestAfterOneEviction) {
  Stage stage({node("n0", 2), node("n1", 2)}, two({.deserved = 2}, {.deserved = 2}));
  stage.run(gang("a0", "q0", 1), {"n0"});
  stage.run(gang("b0", "q1", 2), {"n1"});
  stage.run(gang("b1", "q1", 1), {"n0"});
  stage.wait(gang("a1", "q0", 1));

  EXPECT_EQ(stage.settle(seconds(31)), 1);
  EXPECT_EQ(stage.running(), (Ids{"a0", "a1", "b0"}));
}

TEST(ReclaimGang, DoesNotGoRoundInCircles) {
  Stage stage({node("n0", 4)}, two({.deserved = 2}, {.deserved = 2}));
  stage.run(gang("a0", "q0", 2), {"n0"});
  stage.run(gang("a1", "q0", 1), {"n0"});
  stage.run(gang("b0", "q1", 1), {"n0"});
  stage.wait(gang("b1", "q1", 3));
  stage.wait(gang("b2", "q1", 1));
  stage.wait(gang("a2", "q0", 1));

  EXPECT_LE(stage.settle(seconds(31)), 1);
}

// "b" is over the share of its project. Without both of its tasks, the project would be below its
// quota of GPUs.
TEST(ReclaimGang, TakesNothingThatAnElasticVictimReclaimsTaskByTask) {
  Node n0 = node("n0", 4);
  n0.cpu_milli = 2000;
  Options options;
  options.reservations = 0;
  Stage stage({n0}, two({.deserved = 0, .weight = 1}, {.deserved = 1}), options);
  Gang b = elastic(gang("b", "q1", 1, 2), 1);
  b.groups[0].claim.cpu_milli = 1000;
  Gang a = gang("a", "q0", 1);
  a.groups[0].claim.cpu_milli = 2000;
  stage.run(b, {"n0", "n0"});
  stage.wait(a);

  EXPECT_EQ(stage.settle(seconds(31)), 0);
}

TEST(ReclaimGang, TakesFromTheProjectOfLowerPriority) {
  Stage stage({node("n0", 4)},
              {project("q0", {.deserved = 1, .weight = 1}), project("q1", {.deserved = 1}),
               project("q2", {.deserved = 1, .weight = 1, .priority = 101})});
  stage.run(gang("a0", "q0", 1), {"n0"});
  stage.run(gang("a1", "q0", 1), {"n0"});
  stage.run(gang("c0", "q2", 1), {"n0"});
  stage.run(gang("c1", "q2", 1), {"n0"});
  stage.wait(gang("b0", "q1", 1));

  EXPECT_EQ(evicted(stage.plan(kReclaim)), (Ids{"a1"}));
}

TEST(ReclaimGang, ReclaimsFromAnotherDepartmentAboveItsQuota) {
  Stage stage({node("n0", 2)}, {project("d1", {.deserved = 1, .weight = 1}),
                                project("d2", {.deserved = 1, .weight = 1}),
                                project("q0", {.deserved = 1, .weight = 1, .parent = "d1"}),
                                project("q1", {.deserved = 1, .weight = 1, .parent = "d2"})});
  stage.run(gang("a0", "q0", 1), {"n0"});
  stage.run(gang("a1", "q0", 1, 1, kBuild), {"n0"});
  stage.wait(gang("b0", "q1", 1));

  EXPECT_EQ(evicted(stage.plan(kReclaim)), (Ids{"a0"}));
}

TEST(ReclaimGang, SparesGangsThatHaveNotRunForTheMinimumTime) {
  Project sheltered = project("q0", {.deserved = 1, .weight = 1});
  sheltered.reclaim_min_runtime = seconds(100);
  Stage stage({node("n0", 2)}, {sheltered, project("q1", {.deserved = 1, .weight = 1})});
  stage.run(gang("a0", "q0", 2), {"n0"});
  stage.wait(gang("b0", "q1", 1));

  const Plan plan = stage.plan();
  EXPECT_EQ(evicted(plan), (Ids{}));
  ASSERT_TRUE(plan.again_at);
  EXPECT_EQ(*plan.again_at, stage.now + seconds(99));

  stage.now = *plan.again_at;
  EXPECT_EQ(evicted(stage.plan()), (Ids{"a0"}));
}

TEST(ReclaimGang, DoesNotLetTheEvictedEvictInItsTurnBeforeItHasCooledDown) {
  Stage stage({node("n0", 2)}, two({.deserved = 1, .weight = 1}, {.deserved = 1, .weight = 1}));
  stage.run(gang("a0", "q0", 2), {"n0"});
  stage.wait(gang("b0", "q1", 1));
  stage.leave(stage.plan());
  EXPECT_EQ(started(stage.plan()), (Ids{"b0"}));

  // Its project could claim two GPUs now, but not for the gang that was just evicted.
  stage.scheduler.set_projects(
      testing::projects(two({.deserved = 2, .weight = 1}, {.deserved = 0})));
  const Plan plan = stage.plan();
  EXPECT_EQ(evicted(plan), (Ids{}));
  ASSERT_TRUE(plan.again_at);

  stage.now += seconds(30);
  EXPECT_EQ(evicted(stage.plan()), (Ids{"b0"}));
}

}  // namespace
}  // namespace muster::schedule
