// Evictions for the priority of a gang: the scenarios from the documents, small enough to be read.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::minutes;
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

TEST(Preempt, TakesFromALessImportantGangOfTheSameProject) {
  Stage stage({node("n0", 1)}, {project("q0", {.deserved = 1})});
  stage.run(gang("train", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 1, 1, kBuild));

  const Plan plan = stage.plan(kPreempt);

  ASSERT_EQ(evicted(plan), (Ids{"train"}));
  EXPECT_EQ(plan.evictions[0].cause, EvictionCause::kPreempted);
  EXPECT_EQ(promised(plan), (Ids{"build"}));
}

// The end of a gang is reported when all of its tasks have ended.
TEST(Preempt, TakesNothingFromAGangWithATaskOnASilentNode) {
  Node silent = node("n2", 1);
  silent.cordoned = silent.silent = true;
  for (const bool is_silent_at_first : {true, false}) {
    Stage stage({node("n0", 1), node("n1", 1), is_silent_at_first ? silent : node("n2", 1)},
                {project("q0", {.deserved = 3})});
    stage.run(gang("healthy", "q0", 1), {"n0"});
    stage.run(gang("cut", "q0", 1, 2), {"n1", "n2"});
    if (!is_silent_at_first) stage.scheduler.set_node(silent);
    stage.wait(gang("build", "q0", 1, 1, kBuild));

    EXPECT_EQ(evicted(stage.plan(kPreempt)), (Ids{"healthy"})) << is_silent_at_first;
  }
}

TEST(Preempt, TakesFromAGangWhoseSilentNodeAnswersAgain) {
  Stage stage({node("n1", 1), node("n2", 1)}, {project("q0", {.deserved = 2})});
  stage.run(gang("cut", "q0", 1, 2), {"n1", "n2"});
  Node silent = node("n2", 1);
  silent.cordoned = silent.silent = true;
  stage.scheduler.set_node(silent);
  stage.wait(gang("build", "q0", 1, 1, kBuild));
  ASSERT_EQ(evicted(stage.plan(kPreempt)), (Ids{}));

  stage.scheduler.set_node(node("n2", 1));

  EXPECT_EQ(evicted(stage.plan(kPreempt)), (Ids{"cut"}));
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

TEST(Preempt, EvictsNoGangIfAGangThatIsBeingStoppedSuffices) {
  for (const int64_t limit : {-1, 2}) {
    Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2, .limit = limit})});
    stage.run(gang("stopped", "q0", 1), {"n0"});
    stage.run(gang("train", "q0", 1), {"n0"});
    stage.scheduler.leaves("stopped", stage.now + minutes(1));
    stage.wait(gang("build", "q0", 1, 1, kBuild));

    const Plan plan = stage.plan();
    EXPECT_EQ(evicted(plan), (Ids{})) << "limit " << limit;
    EXPECT_EQ(started(plan), (Ids{})) << "limit " << limit;

    stage.end("stopped");
    EXPECT_EQ(started(stage.plan()), (Ids{"build"})) << "limit " << limit;
  }
}

TEST(Preempt, WaitsOnlySoLongForAGangThatIsBeingStopped) {
  for (const int64_t limit : {-1, 2}) {
    Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2, .limit = limit})});
    stage.run(gang("stopped", "q0", 1), {"n0"});
    stage.run(gang("train", "q0", 1), {"n0"});
    const Time ends_by = stage.now + minutes(1);
    stage.scheduler.leaves("stopped", ends_by);
    stage.wait(gang("build", "q0", 1, 1, kBuild));

    const Plan first = stage.plan();
    EXPECT_EQ(evicted(first), (Ids{})) << "limit " << limit;
    EXPECT_EQ(first.again_at, ends_by) << "limit " << limit;
    stage.scheduler.leaves("stopped", ends_by + minutes(1));  // the first call counts
    stage.now = ends_by;
    const Plan second = stage.plan();
    EXPECT_EQ(evicted(second), (Ids{"train"})) << "limit " << limit;
    EXPECT_FALSE(stage.scheduler.has_wrong_node_books());

    stage.leave(second);
    EXPECT_EQ(started(stage.plan()), (Ids{"build"})) << "limit " << limit;
    stage.end("stopped");
    EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
    EXPECT_EQ(stage.scheduler.free_devices("n0"), (std::vector<int>{kWholeGpu, 0}));
  }
}

TEST(Preempt, WaitsNoLongerForAGangThatIsBeingStoppedAndIsAdoptedAgain) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2})});
  stage.run(gang("stopped", "q0", 1), {"n0"});
  stage.run(gang("train", "q0", 1), {"n0"});
  stage.scheduler.leaves("stopped", stage.now + minutes(1));
  stage.wait(gang("build", "q0", 1, 1, kBuild));
  stage.now += minutes(1);
  const std::vector<std::optional<TaskPlace>> places{
      TaskPlace{.node = "n0", .devices = {0}, .share_milli = kWholeGpu}};
  stage.scheduler.adopt(gang("stopped", "q0", 1), places, testing::kStart);
  stage.scheduler.leaves("stopped", stage.now + minutes(1));

  EXPECT_EQ(evicted(stage.plan()), (Ids{"train"}));
}

TEST(Preempt, EvictsWhatAGangThatIsBeingStoppedDoesNotFree) {
  Stage stage({node("n0", 3)}, {project("q0", {.deserved = 3})});
  stage.run(gang("stopped", "q0", 1), {"n0"});
  stage.run(gang("a", "q0", 1), {"n0"});
  stage.run(gang("b", "q0", 1), {"n0"});
  stage.scheduler.leaves("stopped", stage.now + minutes(1));
  stage.wait(gang("build", "q0", 2, 1, kBuild));

  const Plan plan = stage.plan();
  EXPECT_EQ(evicted(plan), (Ids{"b"}));
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  stage.end("stopped");
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));
}

TEST(Preempt, CountsAGangThatIsBeingStoppedAgainstTheLimitOfItsProject) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 1, .weight = 1, .limit = 1})});
  stage.run(gang("stopped", "q0", 1), {"n0"});
  stage.scheduler.leaves("stopped", stage.now + minutes(1));
  stage.wait(gang("next", "q0", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  EXPECT_EQ(stage.scheduler.standing("q0").allocated.gpu_milli, kWholeGpu);

  stage.end("stopped");
  EXPECT_EQ(started(stage.plan()), (Ids{"next"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
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

}  // namespace
}  // namespace muster::schedule
