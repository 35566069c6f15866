// The scenarios of each action of a cycle from the documents, small enough to be read.
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
using testing::kBuildPreempt;
using testing::kStart;
using testing::node;
using testing::project;
using testing::promised;
using testing::Stage;
using testing::started;

TEST(Allocate, ServesTheProjectsInTurnUntilNoResourcesAreLeft) {
  Stage stage({node("n0", 2), node("n1", 2)},
              {project("q0", {.deserved = 1}), project("q1", {.deserved = 1})});
  stage.run(gang("a0", "q0", 1), {"n0"});
  stage.wait(gang("a1", "q0", 1));
  for (const char* id : {"b0", "b1", "b2"}) stage.wait(gang(id, "q1", 1));

  EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{"a1", "b0", "b1"}));
}

TEST(Allocate, StartsTheMoreImportantGangFirstAndOnlyWithinQuotaWhereItIsNotPreemptible) {
  for (const int deserved : {2, 1}) {
    Stage stage({node("n0", 4)}, {project("q1", {.deserved = deserved})});
    stage.run(gang("r0", "q1", 2), {"n0"});
    stage.wait(gang("wide", "q1", 4));
    stage.wait(gang("train", "q1", 2));
    stage.wait(gang("build", "q1", 2, 1, kBuild));

    EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{deserved == 2 ? "build" : "train"}));
  }
}

TEST(Allocate, ServesProjectsThatStayWithinTheirQuotaFirst) {
  Stage stage({node("n0", 4)}, {project("q0", {.deserved = 2}), project("q1", {.deserved = 2})});
  stage.run(gang("a0", "q0", 1), {"n0"});
  stage.run(gang("b0", "q1", 1), {"n0"});
  stage.wait(gang("a1", "q0", 2));
  stage.wait(gang("b1", "q1", 1));

  EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{"b1"}));
}

TEST(Allocate, GivesTheOnlyGpuToTheProjectWithQuota) {
  Stage stage({node("n0", 1)}, {project("q0", {.deserved = 0}), project("q1", {.deserved = 1})});
  stage.wait(gang("a", "q0", 1));
  stage.wait(gang("b", "q1", 1));

  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(Allocate, CountsANonPreemptibleGangAgainstNonPreemptibleUseAlone) {
  Stage stage({node("n0", 8)}, {project("q0", {.deserved = 2})});
  stage.run(gang("r0", "q0", 2, 1, kBuildPreempt), {"n0"});
  stage.wait(gang("b0", "q0", 2, 1, kBuild));
  stage.wait(gang("b1", "q0", 2, 1, kBuild));

  EXPECT_EQ(started(stage.plan()), (Ids{"b0"}));
}

TEST(Allocate, StartsAllOfAGangOrNothingOfIt) {
  Stage stage({node("n0", 2), node("n1", 1)}, {project("q0", {.deserved = 4})});
  stage.wait(gang("four", "q0", 1, 4));
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.scheduler.set_node(node("n2", 1));

  const Plan plan = stage.plan();
  ASSERT_EQ(started(plan), (Ids{"four"}));
  EXPECT_EQ(plan.starts[0].tasks, (std::vector<int>{0, 1, 2, 3}));
}

TEST(Allocate, DoesNotLetABlockedHeadBlockSmallerGangsOrOtherProjects) {
  Stage stage({node("n0", 4)}, {project("q0", {.deserved = 4}), project("q1", {.deserved = 0})});
  stage.run(gang("r0", "q0", 2), {"n0"});
  stage.wait(gang("blocked", "q0", 4));
  stage.wait(gang("small", "q0", 1));
  stage.wait(gang("other", "q1", 1));

  EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{"other", "small"}));
}

TEST(Allocate, TriesThePoolsOfAGangInItsOrder) {
  Stage stage({node("a0", 1, "a"), node("b0", 4, "b")}, {project("q0", {.deserved = 8})});
  Gang both = gang("both", "q0", 1);
  both.pools = {"b", "a"};
  stage.wait(both);
  Gang wide = gang("wide", "q0", 2);
  wide.pools = {"a", "b"};
  stage.wait(wide);

  const Plan plan = stage.plan();

  ASSERT_EQ(started(plan), (Ids{"both", "wide"}));
  for (const PlannedStart& start : plan.starts) EXPECT_EQ(start.places[0].node, "b0") << start.id;
}

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

TEST(Preempt, TakesFromALessImportantGangOfTheSameProject) {
  Stage stage({node("n0", 1)}, {project("q0", {.deserved = 1})});
  stage.run(gang("train", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 1, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(evicted(plan), (Ids{"train"}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kPreempted);
  EXPECT_EQ(promised(plan), (Ids{"build"}));
}

TEST(Preempt, NeverTakesFromAnEqual) {
  Stage stage({node("n0", 1)}, {project("q0", {.deserved = 1})});
  stage.run(gang("one", "q0", 1), {"n0"});
  stage.wait(gang("other", "q0", 1));

  EXPECT_EQ(evicted(stage.plan(kPreempt)), (Ids{}));
}

TEST(Preempt, TakesNoMoreThanItNeeds) {
  Stage stage({node("n0", 4)}, {project("q0", {.deserved = 4})});
  stage.run(gang("wide", "q0", 2), {"n0"});
  stage.run(gang("a", "q0", 1), {"n0"});
  stage.run(gang("b", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  EXPECT_EQ(evicted(stage.plan(kPreempt)), (Ids{"a", "b"}));
}

TEST(Preempt, TakesTheTasksBeyondTheMinimumFirstAndTheLauncherLast) {
  Stage stage({node("n0", 4)}, {project("q0", {.deserved = 4})});
  Gang mpi = gang("mpi", "q0", 1, 3);
  mpi.groups = {TaskGroup{.claim = {.gpus = 1}, .count = 1, .minimum = 0, .launcher = true},
                TaskGroup{.claim = {.gpus = 1}, .count = 3, .minimum = 1}};
  stage.run(mpi, {"n0", "n0", "n0", "n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(plan.evictions.size(), 1U);
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{2, 3}));
}

TEST(Preempt, MovesTasksThatFitElsewhereAndEvictsTheOthers) {
  Stage stage({node("n0", 2), node("n1", 1)}, {project("q0", {.deserved = 4})});
  stage.run(elastic(gang("train", "q0", 1, 2), 1), {"n0", "n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(plan.evictions.size(), 1U);
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.evictions[0].moved, (std::vector<int>{0}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kPreempted);
  ASSERT_EQ(promised(plan), (Ids{"build", "train"}));

  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"build", "train"}));
  EXPECT_EQ(stage.tasks_of("train"), 1);
}

TEST(Preempt, EvictsOnlyTheTaskThatIsInTheWay) {
  Stage stage({node("n0", 2), node("n1", 1)}, {project("q0", {.deserved = 4})});
  stage.run(elastic(gang("train", "q0", 1, 2), 1), {"n0", "n1"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(plan.evictions.size(), 1U);
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{0}));
  EXPECT_EQ(plan.evictions[0].moved, (std::vector<int>{}));
}

TEST(Preempt, MovesNothingAboveTheLimitOfItsProject) {
  Stage stage({node("n0", 2), node("n1", 1)}, {project("q0", {.deserved = 4, .limit = 2})});
  stage.run(elastic(gang("train", "q0", 1, 2), 1), {"n0", "n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(plan.evictions.size(), 1U);
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{0, 1}));
  EXPECT_EQ(plan.evictions[0].moved, (std::vector<int>{}));
}

TEST(Preempt, EvictsGangsOfItsProjectToStayWithinItsLimit) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 1, .weight = 1, .limit = 1})});
  stage.run(gang("train", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 1, 1, kBuild));

  const Plan plan = stage.plan();
  EXPECT_EQ(evicted(plan), (Ids{"train"}));
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "the limit is still used up";

  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));
}

// A gang that starts in a plan is no victim of that plan.
TEST(Preempt, LooksAgainAfterThisPlanStartedALessImportantGang) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2})});
  stage.run(gang("old", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));
  stage.wait(gang("young", "q0", 1));

  const Plan plan = stage.plan();

  EXPECT_EQ(started(plan), (Ids{"young"}));
  EXPECT_EQ(plan.again_at, stage.now);
  EXPECT_EQ(evicted(stage.plan()), (Ids{"old", "young"}));
}

TEST(Consolidate, LeavesTrialsToReclaimInTheSamePlan) {
  Stage stage({node("n0", 4), node("n1", 4), node("n2", 4), node("n3", 4)},
              {project("guest", {.deserved = 0}), project("idle", {.deserved = 0}),
               project("owner", {.deserved = 4})});
  for (const char* number : {"0", "1", "2", "3"}) {
    stage.run(gang(std::string("g") + number, "guest", 3), {std::string("n") + number});
  }
  // One GPU is free on each node, and none of the gangs fits elsewhere: each search is in vain.
  stage.wait(gang("two", "idle", 2));
  stage.wait(gang("three", "idle", 3));
  stage.wait(gang("four", "owner", 4));

  const Plan plan = stage.plan();

  EXPECT_EQ(evicted(plan), (Ids{"g3"}));
  EXPECT_EQ(promised(plan), (Ids{"four"}));
}

TEST(Consolidate, MovesOneThatAnotherMayRun) {
  Stage stage({node("n0", 4), node("n1", 4)}, {project("q0", {.deserved = 2})});
  stage.run(gang("a", "q0", 2), {"n0"});
  stage.run(gang("b", "q0", 2), {"n1"});
  stage.wait(gang("wide", "q0", 3));

  const Plan plan = stage.plan(kConsolidate);

  ASSERT_EQ(evicted(plan), (Ids{"b"}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kMoved);
  EXPECT_EQ(promised(plan), (Ids{"b", "wide"}));
}

TEST(Consolidate, MovesTheJobThatHasAnotherPlaceWhicheverIsTheYounger) {
  for (const bool small_first : {true, false}) {
    Stage stage({node("n0", 4), node("n1", 4)}, {project("q0", {.deserved = 2})});
    stage.run(gang("wide", "q0", 3), {"n0"});
    if (small_first) stage.run(gang("small", "q0", 1), {"n1"});
    stage.run(gang("medium", "q0", 2), {"n1"});
    if (!small_first) stage.run(gang("small", "q0", 1), {"n1"});
    stage.wait(gang("new", "q0", 2));

    const Plan plan = stage.plan(kConsolidate);

    EXPECT_EQ(evicted(plan), (Ids{"small"})) << small_first;
    EXPECT_EQ(promised(plan), (Ids{"new", "small"})) << small_first;
  }
}

TEST(Consolidate, MovesTwoWhereTheFirstTakesThePlaceOfTheSecond) {
  for (const int most : {1, 2}) {
    Options options;
    options.most_consolidation_victims = most;
    Stage stage({node("n0", 3), node("n1", 4), node("n2", 4)}, {project("q0", {.deserved = 9})},
                options);
    stage.run(gang("first", "q0", 2), {"n0"});
    stage.run(gang("second", "q0", 1), {"n1"});
    stage.run(gang("fixed1", "q0", 2, 1, kBuild), {"n1"});
    stage.run(gang("fixed2", "q0", 3, 1, kBuild), {"n2"});
    stage.wait(gang("new", "q0", 3));

    const Plan plan = stage.plan(kConsolidate);

    EXPECT_EQ(evicted(plan), most == 1 ? Ids{} : (Ids{"first", "second"}));
    for (const Eviction& eviction : plan.evictions) {
      EXPECT_EQ(eviction.cause, EvictionCause::kMoved);
      EXPECT_EQ(eviction.moved, eviction.tasks);
    }
    stage.leave(plan);
    EXPECT_EQ(started(stage.plan(kConsolidate)),
              most == 1 ? Ids{} : (Ids{"first", "new", "second"}));
  }
}

// The move of "y" to the node of "x" and that of "x" to the node of "y" make a chain. One worker of
// "x" is beyond the minimum, and could stay, but not while the others move.
TEST(Consolidate, MovesAllTasksOfAGangThatCannotKeepItsMinimumMeanwhile) {
  Node n0 = node("n0", 2);
  n0.cpu_milli = 6000;
  Node n1 = node("n1", 4);
  n1.cpu_milli = 3000;
  Stage stage({n0, n1}, {project("q", {.deserved = 6})});
  Gang x = elastic(gang("x", "q", 1, 2, kBuildPreempt), 1);
  x.groups[0].claim.cpu_milli = 1000;
  x.groups.insert(x.groups.begin(), {.claim = {.gpus = 1, .cpu_milli = 500}, .launcher = true});
  Gang y = gang("y", "q", 0);
  y.groups[0].claim = {.gpu_share_milli = 500, .cpu_milli = 2000};
  stage.run(x, {"n0", "n0", "n1"});
  stage.run(gang("z", "q", 1), {"n1"});
  stage.scheduler.adopt(y, {TaskPlace{.node = "n1", .devices = {2}, .share_milli = 500}}, kStart);
  Gang wide = gang("wide", "q", 0, 2);
  wide.groups[0].claim = {.gpu_share_milli = 300, .cpu_milli = 1000};
  wide.groups.insert(wide.groups.begin(), {.claim = {.cpu_milli = 500}, .launcher = true});
  stage.wait(wide);

  const Plan plan = stage.plan();

  ASSERT_EQ(evicted(plan), (Ids{"x", "y"}));
  for (const Eviction& eviction : plan.evictions) {
    const bool is_x = eviction.id == "x";
    EXPECT_EQ(eviction.tasks, is_x ? (std::vector<int>{0, 1, 2}) : std::vector<int>{0});
    EXPECT_EQ(eviction.moved, eviction.tasks);
  }
}

TEST(Consolidate, MovesNoGangForAGangThatIsNotPreemptible) {
  Stage stage({node("n0", 4), node("n1", 4)}, {project("q0", {.deserved = 8})});
  stage.run(gang("a", "q0", 2), {"n0"});
  stage.run(gang("b", "q0", 2), {"n1"});
  stage.wait(gang("wide", "q0", 3, 1, kBuild));

  EXPECT_EQ(evicted(stage.plan(kConsolidate)), (Ids{}));
}

TEST(Consolidate, MovesNoMoreThanItMay) {
  for (const int most : {1, 2}) {
    Options options;
    options.most_consolidation_victims = most;
    Stage stage({node("n0", 4), node("n1", 4)}, {project("q0", {.deserved = 8})}, options);
    stage.run(gang("a", "q0", 1), {"n0"});
    stage.run(gang("b", "q0", 1), {"n0"});
    stage.run(gang("c", "q0", 1), {"n1"});
    stage.run(gang("d", "q0", 1), {"n1"});
    stage.wait(gang("wide", "q0", 4));

    EXPECT_EQ(evicted(stage.plan(kConsolidate)).size(), most == 1 ? 0U : 2U);
  }
}

TEST(EvictStale, EvictsGangsBelowTheirMinimumAfterTheGrace) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2})});
  stage.run(gang("a", "q0", 1, 2, kBuild), {"n0", "n0"});
  stage.plan();
  stage.scheduler.set_node([] {
    Node small = node("n0", 2);
    small.cordoned = true;
    return small;
  }());
  stage.scheduler.lost("a", 1, stage.now);

  const Plan before = stage.plan();
  EXPECT_EQ(evicted(before), (Ids{}));
  EXPECT_EQ(before.again_at, stage.now + seconds(60));

  stage.now += seconds(60);
  const Plan after = stage.plan();
  ASSERT_EQ(evicted(after), (Ids{"a"}));
  EXPECT_EQ(after.evictions[0].cause, EvictionCause::kStale);
  EXPECT_EQ(after.evictions[0].tasks, (std::vector<int>{0}));
}

TEST(EvictStale, NeverDoesWithoutAGrace) {
  Options options;
  options.stale_grace.reset();
  Stage stage({node("n0", 1)}, {project("q0", {.deserved = 2})}, options);
  stage.run(gang("a", "q0", 1, 2), {"n0", ""});
  stage.now += std::chrono::hours(1000);

  EXPECT_EQ(evicted(stage.plan()), (Ids{}));
}

}  // namespace
}  // namespace muster::schedule
