#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::evicted;
using testing::gang;
using testing::Ids;
using testing::kBuild;
using testing::kTrain;
using testing::node;
using testing::project;
using testing::Stage;
using testing::started;

const Options kForbearing{.forbearance = seconds(1)};

/// Two trains run on the two GPUs; a build that needs both GPUs was just submitted.
Stage build_behind_trains() {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2})}, kForbearing);
  stage.run(gang("a", "q0", 1), {"n0"});
  stage.run(gang("b", "q0", 1), {"n0"});
  stage.wait(gang("build", "q0", 2, 1, kBuild));
  return stage;
}

TEST(Forbearance, EvictsNoGangForAGangThatWasJustSubmitted) {
  Stage stage = build_behind_trains();
  const Plan plan = stage.plan();
  EXPECT_EQ(evicted(plan), (Ids{}));
  EXPECT_EQ(plan.again_at, stage.now + seconds(1));

  stage.now += seconds(1);
  EXPECT_EQ(evicted(stage.plan()), (Ids{"a", "b"}));
}

TEST(Forbearance, KeepsReleasedResourcesFromLessImportantGangsOfItsProject) {
  Stage stage = build_behind_trains();
  stage.wait(gang("c", "q0", 1));
  stage.plan();

  stage.end("a");
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  EXPECT_EQ(stage.scheduler.explain("c", stage.now).constraint, Constraint::kReserved);

  stage.end("b");
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));
}

TEST(Forbearance, KeepsNothingFromOtherProjects) {
  Stage stage({node("n0", 2)},
              {project("q0", {.deserved = 1, .weight = 1}), project("q1", {.deserved = 1})},
              kForbearing);
  stage.run(gang("a", "q0", 1), {"n0"});
  stage.run(gang("b", "q0", 1), {"n0"});
  stage.wait(gang("wide", "q0", 2, 1, kBuild - 1));
  stage.wait(gang("other", "q1", 1));
  stage.end("a");
  EXPECT_EQ(started(stage.plan()), (Ids{"other"}));
}

TEST(Forbearance, EndsAfterItsTimeLimit) {
  Stage stage({node("n0", 2)}, {project("q0", {.deserved = 2})}, kForbearing);
  stage.run(gang("a", "q0", 1, 1, kBuild), {"n0"});
  stage.wait(gang("wide", "q0", 1, 2, kBuild - 1));
  stage.wait(gang("c", "q0", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.now += seconds(1);
  EXPECT_EQ(started(stage.plan()), (Ids{"c"}));
}

TEST(Forbearance, StartsNoGangThatWouldBeEvictedAtOnceInThePlanInWhichItEnds) {
  Stage stage = build_behind_trains();
  stage.wait(gang("c", "q0", 1));
  stage.plan();

  stage.now += seconds(1);
  stage.end("a");
  const Plan plan = stage.plan();

  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(evicted(plan), (Ids{"b"}));
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"build"}));
}

TEST(Forbearance, StartsLessImportantGangsInTheNextPlanIfNoEvictionHelps) {
  Stage stage({node("n0", 4)}, {project("q0", {.deserved = 4})}, kForbearing);
  stage.run(gang("a", "q0", 2, 1, kBuild), {"n0"});
  stage.run(gang("b", "q0", 1), {"n0"});
  stage.wait(gang("wide", "q0", 3, 1, kBuild - 1));
  stage.wait(gang("c", "q0", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{}));

  stage.now += seconds(1);
  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(plan.again_at, stage.now);
  EXPECT_EQ(started(stage.plan()), (Ids{"c"}));
}

TEST(Forbearance, DoesNotLastWhereTheClockWasSetBack) {
  Stage stage = build_behind_trains();
  stage.now -= seconds(3600);
  EXPECT_EQ(evicted(stage.plan()), (Ids{"a", "b"}));
}

TEST(Forbearance, AnEvictedGangThatIsSubmittedAgainEvictsNoGangForAWhile) {
  Node large = node("n0", 1);
  large.gpu_model = "A";
  Stage stage({large, node("n1", 1)}, {project("q0", {.deserved = 2})});
  stage.run(gang("less", "q0", 1, 1, kTrain - 1), {"n1"});
  stage.run(gang("victim", "q0", 1), {"n0"});
  Gang build = gang("build", "q0", 1, 1, kBuild);
  build.gpu_models = {"A"};
  stage.wait(build);
  ASSERT_EQ(evicted(stage.plan()), (Ids{"victim"}));

  stage.wait(gang("victim", "q0", 1));
  EXPECT_EQ(evicted(stage.plan()), (Ids{}));

  stage.now += seconds(30);
  EXPECT_EQ(evicted(stage.plan()), (Ids{"less"}));
}

}  // namespace
}  // namespace muster::schedule
