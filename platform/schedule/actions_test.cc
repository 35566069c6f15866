// Starts, and evictions of stale gangs: the scenarios from the documents, small enough to be read.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::evicted;
using testing::gang;
using testing::Ids;
using testing::kBuild;
using testing::kBuildPreempt;
using testing::node;
using testing::project;
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
