// Moves that make room: the scenarios from the documents, small enough to be read.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

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

TEST(Consolidate, MovesAGangBesideOneThatHoldsANodeOfAnotherPool) {
  Stage stage({node("n0", 4), node("n1", 4), node("m0", 8, "second")},
              {project("q0", {.deserved = 8})});
  stage.run(gang("a", "q0", 1), {"n0"});
  stage.run(gang("b", "q0", 2), {"n1"});
  const auto place = [](const std::string& name, int device) {
    return TaskPlace{.node = name, .devices = {device}, .share_milli = kWholeGpu};
  };
  stage.scheduler.adopt(gang("spans", "q0", 1, 3), {place("n0", 1), place("m0", 0), place("m0", 1)},
                        kStart);
  stage.wait(gang("new", "q0", 3));

  EXPECT_EQ(evicted(stage.plan(kConsolidate)), (Ids{"a"}));
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

}  // namespace
}  // namespace muster::schedule
