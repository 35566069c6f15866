// Evictions for the priority of a gang: the scenarios from the documents, small enough to be read.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

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

}  // namespace
}  // namespace muster::schedule
