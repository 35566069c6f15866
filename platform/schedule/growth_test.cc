// Gangs that run with their minimum and request more tasks: the resources that they get, and that
// no other gang is evicted for them.
#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::elastic;
using testing::evicted;
using testing::gang;
using testing::Ids;
using testing::limited;
using testing::node;
using testing::project;
using testing::Stage;
using testing::started;

/// Two of three tasks of the gang "a" run, and one GPU is free on each of two nodes.
class Growth : public ::testing::Test {
 protected:
  Growth() {
    stage_.run(elastic(gang("a", "q", 2, 3), 2), {"n0", "n1", ""});
    stage_.run(gang("b", "q", 1), {"n2"});
    stage_.run(gang("c", "q", 1), {"n3"});
  }
  Stage stage_{{node("n0", 2), node("n1", 2), node("n2", 2), node("n3", 2)},
               {project("q", {.deserved = 8, .weight = 1})}};
};

TEST_F(Growth, UsesFreeResources) {
  stage_.end("b");

  const Plan plan = stage_.plan();

  ASSERT_EQ(started(plan), (Ids{"a"}));
  EXPECT_EQ(plan.starts[0].tasks, (std::vector<int>{2}));
  EXPECT_EQ(plan.starts[0].places[0].node, "n2");
}

TEST_F(Growth, MovesNoGang) {
  EXPECT_EQ(evicted(stage_.plan()), (Ids{}));
}

TEST_F(Growth, ReservesNoResourcesHoweverLongItWaits) {
  stage_.plan();
  stage_.now += minutes(30);
  stage_.plan();

  stage_.wait(gang("d", "q", 1));
  stage_.wait(gang("e", "q", 1));

  EXPECT_EQ(started(stage_.plan()), (Ids{"d", "e"})) << "nothing is kept from those who wait";
}

TEST_F(Growth, DelaysNoGangByAReservation) {
  Stage stage({node("n0", 2), node("n1", 2)}, {project("q", {.deserved = 4, .weight = 1})});
  stage.run(elastic(gang("a", "q", 2, 2), 1), {"n0", ""});
  stage.run(limited(gang("b", "q", 1), seconds(100)), {"n1"});
  stage.wait(limited(gang("longer", "q", 1), seconds(1000)));

  EXPECT_EQ(started(stage.plan()), (Ids{"longer"}));
}

TEST_F(Growth, ClaimsItsShareBackFromOtherProjects) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 2}), project("p", {.deserved = 0})});
  stage.run(elastic(gang("a", "q", 1, 2), 1), {"n0", ""});
  stage.run(gang("guest", "p", 1), {"n0"});

  EXPECT_EQ(evicted(stage.plan()), (Ids{"guest"}));
}

}  // namespace
}  // namespace muster::schedule
