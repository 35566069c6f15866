// What a gang that requests GPU memory counts in the ledger.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using testing::evicted;
using testing::gang;
using testing::Ids;
using testing::node;
using testing::project;
using testing::Stage;
using testing::started;

Node node_of_memory(const std::string& name, int64_t gib) {
  Node one = node(name, 1);
  one.gpu_memory_bytes = gib << 30;
  return one;
}

Gang gang_of_8_gib(const std::string& id) {
  Gang one = gang(id, "q", 0);
  one.groups[0].claim.gpu_memory_bytes = int64_t{8} << 30;
  return one;
}

TEST(Charge, FollowsTheGpuMemoryOfANodeThatCameAfterTheGang) {
  Stage stage({}, {project("q", {.deserved = 1, .limit = 1})});
  stage.wait(gang_of_8_gib("a"));
  stage.wait(gang_of_8_gib("b"));

  stage.scheduler.set_node(node_of_memory("n0", 80));

  EXPECT_EQ(started(stage.plan()), (Ids{"a", "b"}));
  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 200);
}

TEST(Charge, RisesForTheGangsThatWaitWhenTheSmallestGpuJoinsAndFallsForAllWhenItLeaves) {
  Stage stage({node_of_memory("n0", 80)}, {project("q", {.deserved = 1, .limit = 1})});
  stage.wait(gang_of_8_gib("a"));
  stage.wait(gang_of_8_gib("b"));
  stage.plan();
  stage.wait(gang_of_8_gib("c"));

  stage.scheduler.set_node(node_of_memory("n1", 16));
  stage.wait(gang_of_8_gib("d"));

  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 200);
  EXPECT_EQ(started(stage.plan()), (Ids{"c"}));
  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 700);
  EXPECT_EQ(stage.scheduler.explain("d", stage.now).constraint, Constraint::kLimit);

  stage.scheduler.set_node(node_of_memory("n2", 80));
  stage.scheduler.remove_node("n1");
  EXPECT_EQ(started(stage.plan()), (Ids{"d"}));
  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 400);
  EXPECT_FALSE(stage.scheduler.is_stale());
}

TEST(Charge, RisesForARunningGangOnlyWhenItWaitsAgain) {
  Stage stage({node_of_memory("n0", 80)}, {project("q", {.deserved = 1})});
  stage.wait(gang_of_8_gib("a"));
  ASSERT_EQ(started(stage.plan()), (Ids{"a"}));
  stage.scheduler.set_node(node_of_memory("n1", 16));
  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 100);
  EXPECT_EQ(stage.scheduler.standing("q").requested.gpu_milli, 100);

  stage.scheduler.requeue("a");
  EXPECT_EQ(stage.scheduler.standing("q").requested.gpu_milli, 500);
  ASSERT_EQ(started(stage.plan()), (Ids{"a"}));
  EXPECT_EQ(stage.scheduler.standing("q").allocated.gpu_milli, 500);
  EXPECT_FALSE(stage.scheduler.is_stale());
}

TEST(Charge, ASmallNodeThatJoinsEvictsNoRunningGang) {
  Stage stage({node_of_memory("n0", 80), node_of_memory("n2", 80)},
              {project("q", {.deserved = 2}), project("p", {.deserved = 2})});
  for (int i = 0; i < 4; ++i) {
    Gang half = gang_of_8_gib("q" + std::to_string(i));
    half.groups[0].claim.gpu_memory_bytes = int64_t{40} << 30;
    stage.wait(half);
  }
  ASSERT_EQ(started(stage.plan()).size(), 4U) << "together they count as two GPUs";
  stage.wait(gang("p0", "p", 1, 2));
  ASSERT_EQ(evicted(stage.plan()), (Ids{}));

  stage.scheduler.set_node(node_of_memory("n1", 16));

  EXPECT_EQ(evicted(stage.plan()), (Ids{}));
}

}  // namespace
}  // namespace muster::schedule
