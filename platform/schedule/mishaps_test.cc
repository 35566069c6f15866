// Deleted projects, nodes that vanish or shrink, and other mishaps.
#include <gtest/gtest.h>

#include "schedule/cluster.h"
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
using testing::one_project;
using testing::project;
using testing::promised;
using testing::Stage;
using testing::started;

TEST(BadLuck, AQuotaBelowItsUseStopsNoRunningGang) {
  Stage stage({node("n0", 4)}, one_project(4));
  stage.run(gang("a", "q", 4, 1, kBuild), {"n0"});
  stage.scheduler.set_projects({project("q", {.deserved = 1, .limit = 2})});
  stage.wait(gang("b", "q", 1));

  const Plan plan = stage.plan();

  EXPECT_EQ(evicted(plan), (Ids{}));
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(plan.waits.at(0).verdict->constraint, Constraint::kLimit);
}

TEST(BadLuck, GangsOfADeletedProjectWaitAndRunOn) {
  Stage stage({node("n0", 2)}, one_project());
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.scheduler.set_projects({});

  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(evicted(plan), (Ids{}));
  EXPECT_EQ(plan.waits.at(0).verdict->constraint, Constraint::kProject);

  stage.scheduler.set_projects(one_project());
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(BadLuck, AGangThatMayUseAnotherPoolKeepsItsPromiseAndItsPause) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  stage.run(gang("a", "q", 2), {"n0"});
  stage.wait(gang("b", "p", 2));
  stage.wait(gang("later", "p", 1));
  stage.scheduler.requeue("later", stage.now + seconds(60));
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"b"}));

  stage.scheduler.set_node(node("m0", 1, "second"));
  for (const char* id : {"b", "later"}) stage.scheduler.set_pools(id, {"default", "second"});
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  EXPECT_EQ(stage.scheduler.explain("b", stage.now).constraint, Constraint::kReleasing);
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
  EXPECT_FALSE(stage.scheduler.is_stale());
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());

  stage.now += seconds(60);
  EXPECT_EQ(started(stage.plan()), (Ids{"later"})) << "in the other pool";
}

TEST(BadLuck, ANodeThatVanishesTakesItsPromisesAlong) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  stage.run(gang("a", "q", 2), {"n0"});
  stage.wait(gang("b", "p", 2));
  ASSERT_EQ(promised(stage.plan()), (Ids{"b"}));

  stage.scheduler.remove_node("n0");
  stage.scheduler.requeue("a");
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.scheduler.set_node(node("n1", 2));
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(BadLuck, ANodeThatBecomesTooSmallForAPromiseReleasesIt) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 0}), project("p", {.deserved = 4})});
  stage.run(gang("a", "q", 4), {"n0"});
  stage.wait(gang("b", "p", 4));
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"b"}));

  stage.scheduler.set_node(node("n0", 3));
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.scheduler.set_node(node("n1", 4));
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

Node with_a_plugin(int gpus) {
  Node one = node("n0", gpus);
  one.anonymous_gpus = true;
  return one;
}

TEST(BadLuck, ADevicePluginThatGivesAGpuToOthersLeavesTheRestUsable) {
  for (const bool ends_before : {true, false}) {
    Stage stage({with_a_plugin(8)}, one_project(8));
    stage.run(gang("x", "q", 4), {"n0"});
    stage.run(gang("y", "q", 4), {"n0"});

    if (ends_before) stage.end("x");
    stage.scheduler.set_node(with_a_plugin(7));
    if (!ends_before) stage.end("x");
    stage.wait(gang("z", "q", 3));
    stage.wait(gang("w", "q", 1));

    EXPECT_EQ(started(stage.plan()), (Ids{"z"})) << ends_before;
    EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
    stage.end("y");
    EXPECT_EQ(started(stage.plan()), (Ids{"w"}));
  }
}

std::optional<TaskPlace> gpus_of(const std::vector<int>& devices) {
  return TaskPlace{.node = "n0", .devices = devices, .share_milli = kWholeGpu};
}

// The running task gets the free GPU, which was promised, and the promise one that becomes free.
TEST(BadLuck, APromiseRemainsWhenADevicePluginGivesAGpuToOthersAndEnoughAreLeft) {
  Stage stage({with_a_plugin(8)}, {project("q", {.deserved = 4}), project("p", {.deserved = 4})});
  Gang y = gang("y", "q", 4);
  y.sequence = 1;
  Gang x = gang("x", "q", 3);
  x.sequence = 2;
  stage.scheduler.adopt(y, {gpus_of({4, 5, 6, 7})}, stage.now);
  stage.scheduler.adopt(x, {gpus_of({0, 1, 3})}, stage.now);
  stage.wait(gang("z", "p", 3));
  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"x"}));
  ASSERT_EQ(promised(plan), (Ids{"z"}));

  stage.scheduler.set_node(with_a_plugin(7));
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  EXPECT_EQ(stage.scheduler.explain("z", stage.now).constraint, Constraint::kReleasing);
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());

  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"z"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
}

TEST(BadLuck, APromiseRemainsWhenADevicePluginGivesAGpuToOthersThatNoTaskHolds) {
  Stage stage({with_a_plugin(8)}, {project("q", {.deserved = 4}), project("p", {.deserved = 4})});
  stage.run(gang("y", "q", 4), {"n0"});
  stage.run(gang("x", "q", 4), {"n0"});
  stage.wait(gang("z", "p", 4));
  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"x"}));
  stage.leave(plan);
  stage.end("y");

  stage.scheduler.set_node(with_a_plugin(7));
  EXPECT_EQ(stage.scheduler.explain("z", stage.now).constraint, Constraint::kReleasing);
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  EXPECT_EQ(started(stage.plan()), (Ids{"z"}));
}

TEST(BadLuck, APromiseOfGpusThatADevicePluginGaveToOthersIsReleased) {
  Stage stage({with_a_plugin(8)}, {project("q", {.deserved = 4}), project("p", {.deserved = 4})});
  stage.run(gang("x", "q", 4), {"n0"});
  stage.run(gang("y", "q", 4), {"n0"});
  stage.wait(gang("z", "p", 4));
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"z"}));

  stage.scheduler.set_node(with_a_plugin(7));
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "three GPUs are free";

  stage.scheduler.set_node(with_a_plugin(8));
  EXPECT_EQ(started(stage.plan()), (Ids{"z"}));
}

TEST(BadLuck, AnUnusedPartOfAGpuIsPromisedNoLongerWhenTheNodeLacksGpusForItsTasks) {
  Stage stage({with_a_plugin(2)}, one_project());
  const auto part = [](const std::string& id, int milli, int tasks, int priority) {
    Gang one = gang(id, "q", 0, tasks, priority);
    one.groups[0].claim.gpu_share_milli = milli;
    return one;
  };
  stage.wait(part("a", 600, 2, testing::kBuildPreempt));
  ASSERT_EQ(started(stage.plan()), (Ids{"a"}));
  stage.wait(part("b", 300, 2, testing::kTrain));
  ASSERT_EQ(started(stage.plan()), (Ids{"b"}));
  stage.wait(part("c", 400, 1, testing::kBuildPreempt));
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"c"}));

  stage.scheduler.set_node(with_a_plugin(1));
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "the tasks of a hold two GPUs";
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());

  stage.scheduler.set_node(with_a_plugin(2));
  EXPECT_EQ(started(stage.plan()), (Ids{"c"}));
}

TEST(BadLuck, APromiseWaitsForNoTaskOnANodeThatGoesSilentAfterTheEviction) {
  Stage stage({node("n0", 1), node("n1", 1), node("n2", 1)}, {project("q", {.deserved = 3})});
  stage.run(gang("healthy", "q", 1), {"n0"});
  stage.run(gang("cut", "q", 1, 2), {"n1", "n2"});
  stage.wait(gang("build", "q", 1, 1, kBuild));
  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"cut"})) << "it is younger";
  ASSERT_EQ(promised(plan), (Ids{"build"}));

  Node silent = node("n2", 1);
  silent.cordoned = silent.silent = true;
  stage.scheduler.set_node(silent);

  const Plan next = stage.plan();
  EXPECT_EQ(evicted(next), (Ids{"healthy"}));
  EXPECT_EQ(promised(next), (Ids{"build"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  stage.leave(next);
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));

  stage.scheduler.set_node(node("n2", 1));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  stage.leave(plan);
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  EXPECT_EQ(stage.scheduler.free_devices("n1"), (std::vector<int>{kWholeGpu}));
}

TEST(BadLuck, APromiseWaitsForNoGangThatKeepsATaskOnANodeThatGoesSilentAfterTheEviction) {
  Stage stage({node("n0", 1), node("n1", 1), node("n2", 1)}, {project("q", {.deserved = 3})});
  stage.run(gang("healthy", "q", 1), {"n0"});
  stage.run(elastic(gang("cut", "q", 1, 2), 1), {"n2", "n1"});
  stage.wait(gang("build", "q", 1, 1, kBuild));
  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"cut"})) << "it is younger";
  ASSERT_EQ(plan.evictions[0].tasks, (std::vector<int>{1}));

  Node silent = node("n2", 1);
  silent.cordoned = silent.silent = true;
  stage.scheduler.set_node(silent);

  const Plan next = stage.plan();
  EXPECT_EQ(evicted(next), (Ids{"healthy"}));
  EXPECT_EQ(promised(next), (Ids{"build"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  stage.leave(next);
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));

  stage.leave(plan);
  stage.scheduler.set_node(node("n2", 1));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  EXPECT_EQ(stage.scheduler.free_devices("n1"), (std::vector<int>{kWholeGpu}));
}

TEST(BadLuck, AGangThatIsStoppedLosesWhatItWasPromised) {
  Stage stage({node("n0", 1), node("n1", 2)}, {project("q", {.deserved = 3}), project("p", {})});
  stage.run(gang("guest", "p", 2), {"n1"});
  stage.run(elastic(gang("grows", "q", 1, 3), 1), {"n0", "", ""});
  stage.wait(gang("small", "p", 1));
  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"guest"}));
  ASSERT_EQ(promised(plan), (Ids{"grows"}));

  stage.scheduler.leaves("grows", stage.now + seconds(60));
  stage.leave(plan);

  EXPECT_EQ(started(stage.plan()), (Ids{"guest"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
}

TEST(BadLuck, TheReasonOfAGangThatMayUseAnotherPoolIsReportedAgain) {
  Stage stage({node("n0", 1)}, {project("q", {.deserved = 2})});
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("b", "q", 1));
  ASSERT_EQ(stage.plan().waits.size(), 1U);
  ASSERT_EQ(stage.plan().waits.size(), 0U);

  stage.scheduler.set_node(node("m0", 0, "second"));
  stage.scheduler.set_pools("b", {"second"});
  stage.scheduler.set_pools("b", {"default", "second"});

  EXPECT_EQ(stage.plan().waits.size(), 1U);
}

TEST(BadLuck, ANodeThatComesBackSmallerTakesNothingNew) {
  Stage stage({node("n0", 4)}, one_project());
  stage.run(gang("a", "q", 3), {"n0"});
  stage.scheduler.set_node(node("n0", 2));
  stage.wait(gang("b", "q", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.end("a");

  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(BadLuck, ANodeChangesItsPoolAfterItsTasksHaveEnded) {
  Stage stage({node("n0", 2)}, one_project());
  stage.run(gang("a", "q", 1), {"n0"});
  stage.scheduler.set_node(node("n0", 2, "other"));
  Gang there = gang("b", "q", 1);
  there.pools = {"other"};
  stage.wait(there);
  stage.wait(gang("c", "q", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.end("a");

  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(BadLuck, AClockThatJumpsBackHarmsNothing) {
  Stage stage({node("n0", 1)}, one_project());
  stage.run(testing::limited(gang("a", "q", 1), seconds(10)), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.plan();

  stage.now -= std::chrono::hours(24);
  stage.wait(gang("c", "q", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  stage.end("a");

  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(BadLuck, WithWeightsOfZeroGangsStillGetQuotasAndFreeResources) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1}), project("p", {.deserved = 1})});
  for (int i = 0; i < 4; ++i) stage.wait(gang("a" + std::to_string(i), "q", 1));
  EXPECT_EQ(stage.plan().starts.size(), 4U) << "nobody else wants it";

  stage.wait(gang("b0", "p", 1));
  EXPECT_EQ(stage.settle(), 1);
  EXPECT_TRUE(stage.runs("b0"));
}

TEST(BadLuck, AGangThatCanNeverFitDelaysNoOther) {
  Stage stage({node("n0", 1)}, one_project());
  stage.wait(gang("never", "q", 9));
  stage.wait(gang("fits", "q", 1));

  EXPECT_EQ(started(stage.plan()), (Ids{"fits"}));
}

TEST(BadLuck, UnknownIdsAreNoError) {
  Stage stage({node("n0", 1)}, one_project());

  stage.scheduler.ended("nobody");
  stage.scheduler.released("nobody", {0});
  stage.scheduler.lost("nobody", 0, stage.now);
  stage.scheduler.requeue("nobody");
  stage.scheduler.remove_node("nowhere");

  EXPECT_EQ(stage.scheduler.explain("nobody", stage.now), WaitVerdict{});
  EXPECT_TRUE(stage.scheduler.free_devices("nowhere").empty());
}

// The class of p still has the constraint of the limit when q, which is served next, finds no room.
TEST(BadLuck, AGangThatJoinsOthersWhoseLimitWasJustRaisedHasAReason) {
  const std::vector<Project> before{project("p", {.deserved = 8, .weight = 1, .limit = 1}),
                                    project("q", {.deserved = 3, .weight = 1})};
  std::vector<Project> after = before;
  after[0].quota.limit.gpu_milli = 8 * kWholeGpu;
  Stage stage({node("n0", 2)}, before);
  stage.run(gang("p1", "p", 1), {"n0"});
  stage.run(gang("q1", "q", 1), {"n0"});
  stage.wait(gang("p2", "p", 1));
  stage.wait(gang("q2", "q", 1));
  stage.plan();

  stage.scheduler.set_projects(testing::projects(after));
  stage.end("q1");
  stage.wait(gang("p3", "p", 1));
  const Plan plan = stage.plan();

  EXPECT_EQ(started(plan), (Ids{"p2"}));
  const auto wait_of_p3 = std::find_if(plan.waits.begin(), plan.waits.end(),
                                       [](const WaitingGang& one) { return one.id == "p3"; });
  ASSERT_NE(wait_of_p3, plan.waits.end());
  EXPECT_NE(wait_reason(*wait_of_p3->verdict).text, "");
}

TEST(BadLuck, APoolThatNoGangNamesAnyMoreIsForgotten) {
  Cluster cluster;
  set_cluster_node(cluster, node("n0", 1));
  remove_cluster_node(cluster, "n0");
  Gang dreamer = gang("dreamer", "q", 1);
  dreamer.pools = {kDefaultPool, "no-such-pool", "nor-this"};
  GangState& waiting = cluster.enter_gang(dreamer);
  cluster.drop_unused_pools();
  EXPECT_EQ(cluster.pools.size(), 3U);

  cluster.forget_gang(waiting);
  cluster.drop_unused_pools();

  ASSERT_EQ(cluster.pools.size(), 1U);
  EXPECT_EQ(cluster.pools.begin()->first, kDefaultPool) << "it had a node, and has a history";
}

TEST(BadLuck, TenThousandProjectsAreServedInOnePlan) {
  std::vector<Project> list;
  Stage stage;
  for (int i = 0; i < 10'000; ++i)
    list.push_back(project("p" + std::to_string(i), {.deserved = 1}));
  stage.scheduler.set_projects(testing::projects(list));
  stage.scheduler.set_node(node("n0", 8));
  for (const Project& one : list) stage.wait(gang("g-" + one.name, one.name, 1));

  EXPECT_EQ(stage.plan().starts.size(), 8U);
}

}  // namespace
}  // namespace muster::schedule
