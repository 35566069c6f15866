// Events and questions.
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

TEST(Scheduler, PlansNothingWhereNothingHasChanged) {
  Stage stage({node("n0", 1)}, one_project());
  stage.wait(gang("a", "q", 1));
  stage.wait(gang("b", "q", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{"a"}));

  Plan nothing;
  nothing.again_at = testing::kStart + std::chrono::minutes(10);  // when the patience of b ends
  EXPECT_EQ(stage.plan(), nothing);
}

TEST(Scheduler, StartsTheNextOneWhenOneEnds) {
  Stage stage({node("n0", 1)}, one_project());
  stage.wait(gang("a", "q", 1));
  stage.wait(gang("b", "q", 1));
  stage.plan();

  stage.end("a");

  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(Scheduler, StartsAGangThatWasPutBackOnlyAfterItsTime) {
  Stage stage({node("n0", 1)}, one_project());
  stage.wait(gang("a", "q", 1));
  stage.plan();

  stage.scheduler.requeue("a", stage.now + seconds(10));

  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(plan.again_at, stage.now + seconds(10));
  stage.now += seconds(10);
  EXPECT_EQ(started(stage.plan()), (Ids{"a"}));
}

TEST(Scheduler, AddsTasksToAnElasticGangWhenResourcesBecomeFree) {
  Stage stage({node("n0", 2)}, one_project());
  stage.wait(elastic(gang("a", "q", 1, 4), 1));
  EXPECT_EQ(stage.plan().starts.at(0).tasks, (std::vector<int>{0, 1}));

  stage.scheduler.set_node(node("n1", 1));

  EXPECT_EQ(stage.plan().starts.at(0).tasks, (std::vector<int>{2}));
}

TEST(Scheduler, RestartsALostTaskIfTheGangContinues) {
  Stage stage({node("n0", 2)}, one_project());
  stage.wait(gang("a", "q", 1, 2));
  stage.plan();

  stage.scheduler.lost("a", 1, stage.now);

  const Plan plan = stage.plan();
  ASSERT_EQ(started(plan), (Ids{"a"}));
  EXPECT_EQ(plan.starts[0].tasks, (std::vector<int>{1}));
}

TEST(Scheduler, KeepsTheResourcesOfEvictedTasksUntilTheyHaveEnded) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  stage.run(gang("a", "q", 1, 2), {"n0", "n0"});
  stage.wait(gang("b", "p", 2));
  stage.wait(gang("c", "p", 1));

  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"a"}));
  stage.scheduler.released("a", {0});
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "neither half of it, nor to anybody else";
  stage.scheduler.released("a", {1});
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

TEST(Scheduler, GivesReservedResourcesToOthersWhenTheirGangIsWithdrawn) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  stage.run(gang("a", "q", 2), {"n0"});
  stage.wait(gang("b", "p", 2));
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"b"}));

  stage.end("b");
  stage.leave(plan);

  EXPECT_EQ(started(stage.plan()), (Ids{"a"}));
}

// Gangs that ran before the scheduler did.

using Places = std::vector<std::optional<TaskPlace>>;

TaskPlace place_on(const std::string& node, std::vector<int> devices) {
  return {.node = node, .devices = std::move(devices), .share_milli = kWholeGpu};
}

TEST(Adopt, BooksAGangAgainOnANodeThatIsReportedLater) {
  Stage stage({}, one_project());
  Gang running = gang("a", "q", 2);
  const Places places{place_on("n0", {0, 1})};
  stage.scheduler.adopt(running, places, testing::kStart);

  stage.scheduler.set_node(node("n0", 2, "second"));
  running.pools = {kDefaultPool, "second"};
  stage.scheduler.adopt(running, places, testing::kStart);

  EXPECT_EQ(stage.scheduler.free_devices("n0"), (std::vector<int>{0, 0}));
  EXPECT_EQ(stage.scheduler.standing("q", "second").allocated.gpu_milli, 2 * kWholeGpu);
  EXPECT_EQ(stage.scheduler.standing("q", kDefaultPool).allocated.gpu_milli, 0);
}

TEST(Adopt, KeepsThePromisesOfAGangWhoseNodeIsReportedLater) {
  Stage stage({node("n1", 4)}, {project("q", {.deserved = 4}), project("p", {.deserved = 0})});
  stage.run(gang("guest", "p", 4), {"n1"});
  const Gang grows = elastic(gang("e", "q", 1, 2), 1);
  const Places places{place_on("n0", {0}), std::nullopt};
  stage.scheduler.adopt(grows, places, testing::kStart);
  const Plan plan = stage.plan();
  ASSERT_EQ(promised(plan), (Ids{"e"}));

  stage.scheduler.set_node(node("n0", 1));
  stage.scheduler.adopt(grows, places, testing::kStart);

  EXPECT_EQ(stage.scheduler.explain("e", stage.now).constraint, Constraint::kReleasing);
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "the guest has not left";
  stage.leave(plan);
  const Plan next = stage.plan();
  ASSERT_EQ(started(next), (Ids{"e"}));
  EXPECT_EQ(next.starts[0].tasks, (std::vector<int>{1}));
}

TEST(Adopt, WaitsForTasksThatWereEvictedBeforeAsLongAsTheirNodeAnswers) {
  Stage stage({node("n0", 2), node("n1", 2)},
              {project("q", {.deserved = 0}), project("p", {.deserved = 4})});
  stage.run(gang("other", "q", 2), {"n1"});
  stage.scheduler.adopt(gang("a", "q", 2), {place_on("n0", {0, 1})}, testing::kStart, {0});
  stage.wait(gang("b", "p", 2));
  EXPECT_EQ(evicted(stage.plan()), (Ids{})) << "b fits when a has left";

  Node silent = node("n0", 2);
  silent.cordoned = silent.silent = true;
  stage.scheduler.set_node(silent);

  EXPECT_EQ(evicted(stage.plan()), (Ids{"other"}));
}

TEST(Adopt, AGangWhoseNodeHasChangedItsPoolHoldsItsDevices) {
  Stage stage({node("n0", 2, "b")}, {project("q", {.deserved = 2})});
  Gang running = gang("a", "q", 1);
  running.pools = {"a"};
  stage.scheduler.adopt(running, {place_on("n0", {0})}, testing::kStart);
  Gang next = gang("next", "q", 2);
  next.pools = {"b"};
  stage.wait(next);

  EXPECT_EQ(stage.scheduler.free_devices("n0"), (std::vector<int>{0, kWholeGpu}));
  EXPECT_EQ(stage.scheduler.standing("q", "a").allocated.gpu_milli, kWholeGpu);
  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(evicted(plan), (Ids{}));
  const WaitReason reason = wait_reason(stage.scheduler.explain("next", stage.now));
  ASSERT_FALSE(reason.details.empty());
  EXPECT_NE(reason.details.back().find("'a' of q (1 GPU)"), std::string::npos)
      << reason.details.back();
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());

  stage.scheduler.ended("a");
  EXPECT_EQ(started(stage.plan()), (Ids{"next"}));
}

TEST(Adopt, AGangOnNodesOfTwoPoolsHoldsTheDevicesOfBothUntilItHasLeft) {
  Stage stage({node("n0", 1), node("n1", 1, "b")},
              {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  const Gang running = gang("a", "q", 1, 2);
  stage.scheduler.adopt(running, {place_on("n0", {0}), place_on("n1", {0})}, testing::kStart);
  EXPECT_EQ(stage.scheduler.free_devices("n0"), (std::vector<int>{0}));
  EXPECT_EQ(stage.scheduler.free_devices("n1"), (std::vector<int>{0}));
  Gang there = gang("there", "p", 1);
  there.pools = {"b"};
  stage.wait(there);
  EXPECT_EQ(evicted(stage.plan()), (Ids{})) << "of a gang of another pool";
  stage.wait(gang("here", "p", 1));

  const Plan plan = stage.plan();
  ASSERT_EQ(evicted(plan), (Ids{"a"}));
  EXPECT_EQ(plan.evictions[0].tasks, (std::vector<int>{0, 1}));
  EXPECT_EQ(started(stage.plan()), (Ids{}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
  stage.leave(plan);
  EXPECT_EQ(started(stage.plan()), (Ids{"here", "there"}));
  EXPECT_FALSE(stage.scheduler.has_wrong_node_books());
}

TEST(Adopt, ANodeThatWaitsToChangeItsPoolWaitsForAGangThatIsAdoptedAgain) {
  Stage stage({node("n0", 1, "a")}, one_project());
  Gang running = gang("a", "q", 1);
  running.pools = {"a"};
  stage.scheduler.adopt(running, {place_on("n0", {0})}, testing::kStart);
  stage.scheduler.set_node(node("n0", 1, "b"));

  running.pools = {"b"};
  stage.scheduler.ended("a");
  stage.scheduler.adopt(running, {place_on("n0", {0})}, testing::kStart);
  Gang next = gang("next", "q", 1);
  next.pools = {"b"};
  stage.wait(next);

  EXPECT_EQ(started(stage.plan()), (Ids{}));
  stage.scheduler.ended("a");
  EXPECT_EQ(started(stage.plan()), (Ids{"next"}));
}

TEST(Adopt, ATaskOnANodeOfAnotherPoolGoesWithItsNode) {
  Stage stage({node("n0", 1, "b")}, one_project());
  Gang running = gang("a", "q", 1);
  running.pools = {"a"};
  stage.scheduler.adopt(running, {place_on("n0", {0})}, testing::kStart);

  stage.scheduler.remove_node("n0");
  stage.scheduler.set_node(node("n0", 1, "b"));

  EXPECT_EQ(stage.scheduler.free_devices("n0"), (std::vector<int>{kWholeGpu}));
  EXPECT_EQ(stage.scheduler.standing("q", "a").allocated.gpu_milli, kWholeGpu);
  stage.scheduler.ended("a");
  EXPECT_EQ(stage.scheduler.standing("q", "a").allocated.gpu_milli, 0);
}

// Waits.

TEST(Waits, ReportTheReasonOfEachGangOnce) {
  Stage stage({node("n0", 1)}, one_project());
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.wait(gang("c", "q", 1));

  const Plan first = stage.plan();
  ASSERT_EQ(first.waits.size(), 2U);
  EXPECT_EQ(first.waits[0].id, "b");
  EXPECT_EQ(first.waits[0].verdict->constraint, Constraint::kRoom);
  EXPECT_FALSE(words::sentence(first.waits[0].verdict->reason).empty());

  stage.wait(gang("d", "q", 1));
  const Plan second = stage.plan();
  ASSERT_EQ(second.waits.size(), 1U);
  EXPECT_EQ(second.waits[0].id, "d");
}

TEST(Waits, NameTheConstraint) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1, .limit = 2})});
  stage.run(gang("a", "q", 1, 1, kBuild), {"n0"});
  stage.wait(gang("limit", "q", 2));
  stage.wait(gang("quota", "q", 1, 1, kBuild));
  stage.wait(gang("project", "nobody", 1));

  const Plan plan = stage.plan();

  std::map<std::string, Constraint> constraints;
  for (const WaitingGang& wait : plan.waits) constraints[wait.id] = wait.verdict->constraint;
  EXPECT_EQ(constraints, (std::map<std::string, Constraint>{{"limit", Constraint::kLimit},
                                                            {"quota", Constraint::kQuota},
                                                            {"project", Constraint::kProject}}));
}

TEST(Explain, NamesTheHoldersOfTheResourcesAndTheEstimatedStart) {
  Stage stage({node("n0", 4)}, one_project());
  stage.run(testing::limited(gang("big", "q", 3), seconds(61)), {"n0"});
  stage.run(gang("little", "q", 1), {"n0"});
  stage.wait(gang("next", "q", 2));
  stage.plan();

  const WaitReason reason = wait_reason(stage.scheduler.explain("next", stage.now));

  EXPECT_EQ(reason.constraint, Constraint::kRoom);
  ASSERT_GE(reason.details.size(), 2U);
  EXPECT_NE(reason.details.back().find("'big' of q (3 GPUs) and 'little' of q (1 GPU)"),
            std::string::npos)
      << reason.details.back();
  EXPECT_EQ(reason.may_start, stage.now + seconds(60));
}

// A gang that fitted when it was submitted, on nodes that have changed since.
TEST(Explain, ReportsThatAGangWouldNotFitEvenIfNothingElseRan) {
  Stage stage({node("n0", 4), node("m0", 1, "other")}, one_project());
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("big", "q", 4));
  Gang any = gang("any", "q", 4);
  any.pools = {kDefaultPool, "other"};
  stage.wait(any);
  stage.plan();
  const auto explained = [&](const std::string& id) {
    return wait_reason(stage.scheduler.explain(id, stage.now));
  };
  EXPECT_EQ(explained("big").constraint, Constraint::kRoom);

  stage.scheduler.set_node(node("n0", 2));
  const WaitReason never = explained("big");
  EXPECT_EQ(never.constraint, Constraint::kNever);
  EXPECT_EQ(never.text, "can never start here: needs 4 GPUs; the only node lacks GPUs (2 GPUs)");
  EXPECT_EQ(never.details, (std::vector<std::string>{"request less, or add larger nodes"}));
  EXPECT_EQ(never.may_start, std::nullopt);
  EXPECT_EQ(explained("any").constraint, Constraint::kNever);

  stage.scheduler.set_node(node("m0", 4, "other"));
  EXPECT_EQ(explained("big").constraint, Constraint::kNever);
  EXPECT_NE(explained("any").constraint, Constraint::kNever) << "it fits in the other pool";
  stage.scheduler.set_node(node("n0", 4));
  EXPECT_EQ(explained("big").constraint, Constraint::kRoom);
}

// No node is in the default pool.
TEST(Explain, PrefersAPoolWithNodesToAPoolWithout) {
  Stage stage({node("m0", 2, "big")}, one_project());
  Gang busy = gang("a", "q", 2);
  busy.pools = {"big"};
  stage.run(busy, {"m0"});
  for (const auto& [id, gpus] : {std::pair("b", 1), {"wide", 3}}) {
    Gang any = gang(id, "q", gpus);
    any.pools = {kDefaultPool, "big"};
    stage.wait(any);
  }

  const Plan plan = stage.plan();

  std::map<std::string, std::string> texts;
  for (const WaitingGang& wait : plan.waits) texts[wait.id] = wait_reason(*wait.verdict).text;
  const std::string busy_text = "needs 1 GPU; the only node lacks GPUs (0 GPUs free)";
  const std::string never_text =
      "can never start here: needs 3 GPUs; the only node lacks GPUs (2 GPUs)";
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"b", busy_text}, {"wide", never_text}}));
  EXPECT_EQ(plan.waits.size(), 2U) << "each gang has one reason";
  EXPECT_EQ(wait_reason(stage.scheduler.explain("b", stage.now)).text, busy_text);
  EXPECT_EQ(wait_reason(stage.scheduler.explain("wide", stage.now)).text, never_text);
}

TEST(Explain, ReportsThatNoPoolHasANodeForTheGangWhenTheLastOneIsCordoned) {
  Stage stage({node("m0", 1, "big")}, one_project());
  Gang busy = gang("a", "q", 1);
  busy.pools = {"big"};
  stage.run(busy, {"m0"});
  Gang any = gang("b", "q", 1);
  any.pools = {kDefaultPool, "big"};
  stage.wait(any);
  ASSERT_EQ(stage.plan().waits.size(), 1U);

  Node cordoned = node("m0", 1, "big");
  cordoned.cordoned = true;
  stage.scheduler.set_node(cordoned);

  const Plan plan = stage.plan();
  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(wait_reason(*plan.waits[0].verdict).text,
            "needs 1 GPU; the only node that it may use is cordoned (pool big)");
}

TEST(Explain, HasTheTimeAtWhichAGangThatWasPutBackMayStart) {
  Stage stage({node("n0", 1)}, one_project());
  stage.wait(gang("a", "q", 1));
  stage.plan();
  stage.scheduler.requeue("a", stage.now + seconds(60));

  const WaitVerdict verdict = stage.scheduler.explain("a", stage.now);

  EXPECT_EQ(verdict.constraint, Constraint::kDelayed);
  EXPECT_EQ(to_string(verdict.constraint), "delayed");
  EXPECT_EQ(verdict.may_start, stage.now + seconds(60));
}

TEST(Explain, ChangesNothing) {
  Stage stage({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  stage.run(gang("a", "q", 2), {"n0"});
  stage.wait(gang("b", "p", 2));
  Stage other({node("n0", 2)}, {project("q", {.deserved = 0}), project("p", {.deserved = 2})});
  other.run(gang("a", "q", 2), {"n0"});
  other.wait(gang("b", "p", 2));

  stage.scheduler.explain("b", stage.now);
  stage.scheduler.forecast(gang("x", "p", 2), stage.now);
  stage.scheduler.forecast(gang("y", "q", 1), stage.now);
  stage.scheduler.queue();

  EXPECT_EQ(stage.plan(), other.plan());
}

TEST(Forecast, PredictsThePlan) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 0}), project("p", {.deserved = 3})});
  stage.run(gang("a", "q", 3), {"n0"});
  stage.plan();

  const Forecast fits = stage.scheduler.forecast(gang("x", "p", 1), stage.now);
  ASSERT_EQ(fits.start.size(), 1U);
  EXPECT_EQ(fits.project_now.allocated.gpu_milli, 0);
  EXPECT_EQ(fits.project_then.allocated.gpu_milli, 1000);

  const Forecast evicts = stage.scheduler.forecast(gang("x", "p", 2), stage.now);
  EXPECT_TRUE(evicts.start.empty());
  ASSERT_EQ(evicts.evictions.size(), 1U);
  EXPECT_EQ(evicts.evictions[0].id, "a");
  EXPECT_EQ(evicts.evictions[0].cause, EvictionCause::kReclaimed);

  const Forecast waits = stage.scheduler.forecast(gang("x", "q", 2), stage.now);
  EXPECT_TRUE(waits.start.empty());
  EXPECT_TRUE(waits.evictions.empty());
  EXPECT_EQ(waits.verdict.constraint, Constraint::kRoom);
}

TEST(Forecast, StartsInALaterPoolBeforeItEvictsInTheFirst) {
  Stage stage({node("n0", 4), node("m0", 4, "other")},
              {project("q", {.deserved = 0}), project("p", {.deserved = 4})});
  stage.run(gang("a", "q", 4), {"n0"});
  stage.plan();
  Gang any = gang("any", "p", 2);
  any.pools = {kDefaultPool, "other"};

  const Forecast forecast = stage.scheduler.forecast(any, stage.now);
  stage.wait(any);
  const Plan plan = stage.plan();

  EXPECT_EQ(started(plan), (Ids{"any"}));
  EXPECT_EQ(evicted(plan), (Ids{}));
  ASSERT_EQ(plan.starts.size(), 1U);
  EXPECT_EQ(forecast.start, plan.starts);
  EXPECT_EQ(forecast.evictions, plan.evictions);
}

TEST(Queue, ListsThemInTheOrderInWhichTheyAreServed) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1}), project("p", {.deserved = 1})});
  stage.run(gang("a", "q", 4), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.wait(gang("c", "p", 1));
  stage.wait(gang("d", "p", 1, 1, kBuild));

  EXPECT_EQ(stage.scheduler.queue(), (Ids{"d", "c", "b"}));
}

TEST(Queue, ListsTheFirstOnesAndTheNumberOfGangsBeforeEach) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1}), project("p", {.deserved = 1})});
  stage.run(gang("a", "q", 4), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.wait(gang("c", "p", 1));
  stage.wait(gang("d", "p", 1, 1, kBuild));

  EXPECT_EQ(stage.scheduler.queue(0), (Ids{}));
  EXPECT_EQ(stage.scheduler.queue(2), (Ids{"d", "c"}));
  EXPECT_EQ(stage.scheduler.queue(4), (Ids{"d", "c", "b"}));
  EXPECT_EQ(stage.scheduler.place_in_queue("d"), 0U);
  EXPECT_EQ(stage.scheduler.place_in_queue("b"), 2U);
  EXPECT_EQ(stage.scheduler.place_in_queue("a"), std::nullopt) << "it runs";
  EXPECT_EQ(stage.scheduler.place_in_queue("x"), std::nullopt);
}

TEST(Queue, ListsAGangThatMayUseSeveralPoolsOnce) {
  Stage stage({node("n0", 1), node("m0", 1, "other")}, {project("q", {.deserved = 2})});
  stage.run(gang("a", "q", 1), {"n0"});
  Gang busy = gang("b", "q", 1);
  busy.pools = {"other"};
  stage.run(busy, {"m0"});
  for (const char* id : {"c", "d"}) {
    Gang any = gang(id, "q", 1);
    any.pools = {kDefaultPool, "other"};
    stage.wait(any);
  }

  EXPECT_EQ(stage.scheduler.queue(), (Ids{"c", "d"}));
  EXPECT_EQ(stage.scheduler.place_in_queue("d"), 1U);
}

TEST(Refuses, GangsThatNoPlacementOrNoLimitCanEverAllow) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1, .limit = 3})});

  const auto never = stage.scheduler.refuses(gang("x", "p", 5));
  ASSERT_TRUE(never);
  EXPECT_EQ(never->constraint, Constraint::kNever);
  const auto limit = stage.scheduler.refuses(gang("x", "q", 4));
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->constraint, Constraint::kLimit);
  EXPECT_FALSE(stage.scheduler.refuses(gang("x", "q", 3)));
  EXPECT_FALSE(stage.scheduler.refuses(gang("x", "q", 2, 1, kBuild))) << "the quota may grow";
}

TEST(Refuses, NamesTheShortageOfAPoolThatHasNodes) {
  Stage stage({node("m0", 2, "big")}, one_project());
  Gang wide = gang("x", "q", 4);
  wide.pools = {kDefaultPool, "big"};

  const auto never = stage.scheduler.refuses(wide);

  ASSERT_TRUE(never);
  EXPECT_EQ(wait_reason(*never).text,
            "can never start here: needs 4 GPUs; the only node lacks GPUs (2 GPUs)");
  wide.pools = {"x", "y"};
  const auto no_node = stage.scheduler.refuses(wide);
  ASSERT_TRUE(no_node);
  EXPECT_NE(wait_reason(*no_node).text.find("there is no node that it may use (pool x or y)"),
            std::string::npos)
      << wait_reason(*no_node).text;
}

TEST(StandingOfAllPools, CountsQuotasOfPoolsWithNodesAndEachWaitingGangOnce) {
  Stage stage({node("m0", 1, "big"), node("h0", 1, "huge")},
              {project("org", {.deserved = 2, .limit = 3}),
               project("q", {.deserved = 2, .limit = 3, .parent = "org"})});
  Gang busy = gang("a", "q", 1);
  busy.pools = {"big"};
  stage.run(busy, {"m0"});
  Gang any = gang("b", "q", 2);
  any.pools = {kDefaultPool, "big", "huge"};

  const Forecast forecast = stage.scheduler.forecast(any, stage.now);
  EXPECT_EQ(forecast.project_now.deserved, forecast.project_then.deserved);
  EXPECT_EQ(forecast.project_now.limit, forecast.project_then.limit);
  EXPECT_EQ(forecast.project_then.requested.gpu_milli, 3 * kWholeGpu);
  stage.wait(any);
  stage.plan();

  for (const char* name : {"q", "org"}) {
    const Standing sum = stage.scheduler.standing(name);
    EXPECT_EQ(sum.deserved.gpu_milli, 4 * kWholeGpu) << name;
    EXPECT_EQ(sum.limit.gpu_milli, 6 * kWholeGpu) << name;
    EXPECT_EQ(sum.requested.gpu_milli, 3 * kWholeGpu) << name;
    EXPECT_EQ(stage.scheduler.standing(name, "huge").requested.gpu_milli, 2 * kWholeGpu) << name;
  }
  stage.end("b");
  EXPECT_EQ(stage.scheduler.standing("q").requested.gpu_milli, kWholeGpu);
}

TEST(Scheduler, NamesNoGangInAReasonThatSeveralGangsShare) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 1, .limit = 1})});
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("b", "q", 1));
  stage.wait(gang("c", "q", 1));

  const Plan plan = stage.plan();

  ASSERT_EQ(plan.waits.size(), 2U);
  for (const WaitingGang& wait : plan.waits) {
    const auto* const over = std::get_if<job::OverCapacity>(&wait.verdict->reason.what);
    ASSERT_NE(over, nullptr);
    EXPECT_EQ(over->job, "");
    EXPECT_EQ(over->requested, kWholeGpu);
  }
}

TEST(Scheduler, ReportsAnewWhyAGangWaitsWhenItsOnlyNodeIsCordonedAndWhenItNoLongerIs) {
  Stage stage({node("n0", 1)}, one_project());
  stage.run(gang("a", "q", 1), {"n0"});
  stage.wait(gang("b", "q", 1));
  const auto reported_for_b = [&] {
    const Plan plan = stage.plan();
    const auto found = std::find_if(plan.waits.begin(), plan.waits.end(),
                                    [](const WaitingGang& one) { return one.id == "b"; });
    return found == plan.waits.end() ? "" : wait_reason(*found->verdict).text;
  };
  EXPECT_EQ(reported_for_b(), "needs 1 GPU; the only node lacks GPUs (0 GPUs free)");

  Node cordoned = node("n0", 1);
  cordoned.cordoned = true;
  stage.scheduler.set_node(cordoned);
  EXPECT_EQ(reported_for_b(),
            "needs 1 GPU; the only node that it may use is cordoned (pool default)");
  stage.scheduler.set_node(node("n0", 1));
  EXPECT_EQ(reported_for_b(), "needs 1 GPU; the only node lacks GPUs (0 GPUs free)");
  stage.scheduler.set_node(node("n0", 1));
  EXPECT_EQ(reported_for_b(), "");
}

TEST(Scheduler, ReportsAnewWhyAGangWaitsWhenANodeIsAddedThatIsLargeEnough) {
  Stage stage({node("n0", 2)}, one_project());
  stage.run(gang("b", "q", 2), {"n0"});
  stage.wait(gang("big", "q", 4));
  const Plan before = stage.plan();
  ASSERT_EQ(before.waits.size(), 1U);
  EXPECT_EQ(before.waits[0].verdict->constraint, Constraint::kNever);

  stage.scheduler.set_node(node("n1", 4));
  stage.run(gang("a", "q", 1), {"n1"});

  const Plan after = stage.plan();
  ASSERT_EQ(after.waits.size(), 1U);
  EXPECT_EQ(after.waits[0].verdict->constraint, Constraint::kRoom);
}

TEST(Scheduler, BackfillServesManyProjectsInOrderOfSubmission) {
  std::vector<Project> list{project("guest", {.deserved = 0})};
  for (int i = 0; i < 100; ++i) list.push_back(project("p" + std::to_string(i), {.deserved = 1}));
  Stage stage({node("n0", 1)}, list, {.policy = Policy::kBackfill});
  stage.wait(gang("first", "guest", 1));
  for (const Project& one : list) stage.wait(gang("g-" + one.name, one.name, 1));

  EXPECT_EQ(started(stage.plan()), (Ids{"first"}));
}

TEST(Scheduler, ANodeThatIsReportedAsBeforeChangesNothing) {
  Cluster cluster;
  set_cluster_node(cluster, node("n0", 1));
  Pool& pool = cluster.pool_of(kDefaultPool);
  pool.dirty = false;

  set_cluster_node(cluster, node("n0", 1));
  EXPECT_FALSE(pool.dirty);
  set_cluster_node(cluster, node("n0", 2));
  EXPECT_TRUE(pool.dirty);
}

}  // namespace
}  // namespace muster::schedule
