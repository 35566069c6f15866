// A wide gang and a stream of small gangs: which small gangs start before the wide gang, and how long
// the wide gang waits at most.
#include <gtest/gtest.h>

#include <deque>

#include "schedule/test_words.h"
#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::gang;
using testing::Ids;
using testing::kStart;
using testing::limited;
using testing::node;
using testing::project;
using testing::Stage;
using testing::started;

std::vector<Project> one_ample_project() {
  return {project("q", {.deserved = 100})};
}

WaitReason reason_of(const Plan& plan, const std::string& id) {
  for (const WaitingGang& wait : plan.waits) {
    if (wait.id == id) return wait_reason(*wait.verdict);
  }
  return {};
}

TEST(Reservation, LetsOnlyGangsThatEndBeforeItsStartRunFirst) {
  for (const Policy policy : {Policy::kFair, Policy::kBackfill}) {
    Options options;
    options.policy = policy;
    Stage stage({node("n0", 5)}, one_ample_project(), options);
    stage.run(limited(gang("r", "q", 3), seconds(101)), {"n0"});  // ends in 100 s
    stage.wait(limited(gang("wide", "q", 5), seconds(10)));
    stage.wait(limited(gang("long", "q", 1), seconds(101)));
    stage.wait(gang("unknown", "q", 1));
    stage.wait(limited(gang("short", "q", 1), seconds(100)));

    const Plan plan = stage.plan();

    EXPECT_EQ(started(plan), (Ids{"short"}));
    const WaitReason reason = reason_of(plan, "long");
    EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
    EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;
    EXPECT_EQ(stage.scheduler.explain("wide", stage.now).may_start, kStart + seconds(100));
    const WaitVerdict late = stage.scheduler.explain("long", stage.now);
    EXPECT_EQ(late.constraint, Constraint::kReserved);
    EXPECT_EQ(late.may_start, std::nullopt) << "it fits now, but the plan holds it";
  }
}

TEST(Reservation, LastsWhileAGangRunsLongerThanExpected) {
  Stage stage({node("n0", 4), node("n1", 4)}, one_ample_project());
  stage.run(limited(gang("r", "q", 4), seconds(101)), {"n0"});  // ends in 100 s
  stage.wait(limited(gang("wide", "q", 4, 2), seconds(10)));
  stage.plan();
  stage.now += seconds(160);

  stage.wait(limited(gang("long", "q", 1), seconds(1000)));
  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{}));
  EXPECT_EQ(reason_of(plan, "long").constraint, Constraint::kReserved);
  stage.scheduler.set_node(node("n2", 1));
  EXPECT_EQ(started(stage.plan()), (Ids{"long"})) << "it delays nothing there";
  stage.end("r");
  EXPECT_EQ(started(stage.plan()), (Ids{"wide"}));
}

TEST(Reservation, LastsWhileTheGangThatItWaitsForIsBeingStopped) {
  for (const int64_t limit : {-1, 12}) {
    for (const seconds stopped_after : {seconds(50), seconds(160)}) {
      SCOPED_TRACE(::testing::Message()
                   << "limit " << limit << ", " << stopped_after.count() << " s");
      Stage stage({node("n0", 4), node("n1", 4)},
                  {project("q", {.deserved = 100, .limit = limit})});
      stage.run(limited(gang("r", "q", 4), seconds(101)), {"n0"});  // ends in 100 s
      stage.wait(gang("wide", "q", 4, 2));
      stage.plan();
      stage.now += stopped_after;
      stage.scheduler.leaves("r", stage.now + seconds(60));

      stage.wait(gang("long", "q", 1));
      const Plan plan = stage.plan();
      EXPECT_EQ(started(plan), (Ids{}));
      EXPECT_EQ(reason_of(plan, "long").constraint, Constraint::kReserved);
      stage.scheduler.set_node(node("n2", 1));
      EXPECT_EQ(started(stage.plan()), (Ids{"long"})) << "it delays nothing there";
      stage.end("r");
      EXPECT_EQ(started(stage.plan()), (Ids{"wide"}));
    }
  }
}

TEST(Reservation, WaitsForNoGangOnASilentNode) {
  Node silent = node("n0", 4);
  silent.cordoned = silent.silent = true;
  Stage stage({silent, node("n1", 4)},
              {project("q", {.deserved = 8, .limit = 7}), project("p", {.deserved = 8})});
  stage.run(limited(gang("r", "q", 4), seconds(101)), {"n0"});
  stage.wait(gang("wide", "q", 4));
  stage.plan();
  stage.now += seconds(160);

  stage.wait(gang("small", "p", 1));

  EXPECT_EQ(started(stage.plan()), (Ids{"small"}));
}

TEST(Reservation, HoldsForItsDevicesAloneAndNotForAllOfANode) {
  Stage stage({node("n0", 8)}, one_ample_project());
  stage.run(limited(gang("r0", "q", 2), seconds(101)), {"n0"});
  stage.run(limited(gang("r1", "q", 2), seconds(1001)), {"n0"});
  stage.run(gang("r2", "q", 2), {"n0"});
  stage.wait(gang("wide", "q", 3));
  stage.wait(gang("small", "q", 1));
  stage.wait(gang("another", "q", 1));

  // Two are free and two end: three of the four are kept, and one is left.
  EXPECT_EQ(started(stage.plan()), (Ids{"small"}));
}

Gang with_cpus(Gang gang, int64_t cpus) {
  gang.groups[0].claim.cpu_milli = cpus * 1000;
  return gang;
}

Node node_with_cpus(int gpus, int64_t cpus) {
  Node one = node("n0", gpus);
  one.cpu_milli = cpus * 1000;
  return one;
}

// The reservation is for the time after the end of "a": what that task holds does not count twice.
TEST(Reservation, KeepsNoGangFromResourcesThatItLeaves) {
  for (const bool is_end_known : {true, false}) {
    Stage stage({node_with_cpus(8, 96)}, one_ample_project());
    Gang running = with_cpus(gang("a", "q", 6), 72);
    if (is_end_known) running = limited(running, std::chrono::hours(1));
    stage.run(running, {"n0"});
    stage.wait(with_cpus(gang("b", "q", 4), 64));
    stage.plan();
    if (!is_end_known) stage.now += std::chrono::minutes(11);
    stage.plan();

    stage.wait(with_cpus(gang("d", "q", 1), 8));
    EXPECT_EQ(started(stage.plan()), (Ids{"d"})) << is_end_known;
    stage.end("a");
    EXPECT_EQ(started(stage.plan()), (Ids{"b"})) << "it was not delayed";
  }
}

TEST(Reservation, KeepsGangsFromStartingThatWouldDelayIt) {
  Stage stage({node_with_cpus(8, 96)}, one_ample_project());
  stage.run(with_cpus(gang("a", "q", 6), 40), {"n0"});
  stage.wait(with_cpus(gang("b", "q", 4), 64));
  stage.plan();
  stage.now += std::chrono::minutes(11);
  stage.plan();

  stage.wait(with_cpus(gang("d", "q", 1), 40));
  stage.wait(with_cpus(gang("e", "q", 1), 32));
  const Plan plan = stage.plan();
  EXPECT_EQ(started(plan), (Ids{"e"}));
  EXPECT_EQ(reason_of(plan, "d").constraint, Constraint::kReserved);
  stage.wait(with_cpus(gang("f", "q", 1), 8));
  EXPECT_EQ(started(stage.plan()), (Ids{})) << "with e, it would delay b";
  stage.end("a");
  EXPECT_EQ(started(stage.plan()), (Ids{"b"}));
}

/// "wide" of project p waits for all GPUs of the node: two are in use, and all are reserved for it.
/// "small" waits because of the reservation.
class Kept : public ::testing::Test {
 protected:
  Kept() {
    stage_.run(gang("r", "q", 2), {"n0"});
    stage_.wait(gang("wide", "p", 4));
    stage_.plan(kAllocate);
    stage_.now += std::chrono::minutes(11);
    stage_.plan(kAllocate);
    stage_.wait(gang("small", "q", 2));
    EXPECT_EQ(started(stage_.plan(kAllocate)), (Ids{}));
  }

  Ids start_with(std::vector<Project> list) {
    stage_.scheduler.set_projects(testing::projects(std::move(list)));
    return started(stage_.plan(kAllocate));
  }

  Stage stage_{{node("n0", 4)}, {project("p", {.deserved = 4}), project("q", {.deserved = 4})}};
};

TEST_F(Kept, EndsWhenALimitKeepsTheGangFromStarting) {
  EXPECT_EQ(start_with({project("p", {.deserved = 4, .limit = 3}), project("q", {.deserved = 4})}),
            (Ids{"small"}));
}

TEST_F(Kept, GivesWayToAProjectWithinItsQuotaOnceTheGangIsOverItsOwn) {
  EXPECT_EQ(start_with({project("p", {.deserved = 3}), project("q", {.deserved = 4})}),
            (Ids{"small"}));
}

TEST_F(Kept, EndsWithTheProjectOfTheGang) {
  EXPECT_EQ(start_with({project("q", {.deserved = 4})}), (Ids{"small"}));
}

TEST_F(Kept, EndsWhenItsNodeBecomesTooSmall) {
  stage_.wait(gang("one", "q", 1));
  stage_.scheduler.set_node(node("n0", 3));

  EXPECT_EQ(started(stage_.plan(kAllocate)), (Ids{"one"}));
}

TEST_F(Kept, LastsAsLongAsTheGangMayStart) {
  EXPECT_EQ(start_with({project("p", {.deserved = 4, .limit = 4}), project("q", {.deserved = 5})}),
            (Ids{}));
  stage_.end("r");
  EXPECT_EQ(started(stage_.plan(kAllocate)), (Ids{"wide"}));
}

// Beside the reservation for "b", which waits for the end of "a", "e" was started.
TEST(Reservation, EndsWhenItsNodeBecomesTooSmallForItAndForTheTasksThatWereStartedBesideIt) {
  Stage stage({node_with_cpus(8, 96)}, one_ample_project());
  stage.run(with_cpus(gang("a", "q", 6), 40), {"n0"});
  stage.wait(with_cpus(gang("b", "q", 4), 64));
  stage.plan();
  stage.now += std::chrono::minutes(11);
  stage.plan();
  stage.wait(with_cpus(gang("e", "q", 1), 32));
  ASSERT_EQ(started(stage.plan()), (Ids{"e"}));

  stage.scheduler.set_node(node_with_cpus(8, 80));
  stage.wait(with_cpus(gang("f", "q", 1), 8));

  EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{"f"}));
}

TEST(Reservation, IsStrictInFifo) {
  Options options;
  options.policy = Policy::kFifo;
  Stage stage({node("n0", 4)}, one_ample_project(), options);
  stage.run(limited(gang("r", "q", 3), seconds(100)), {"n0"});
  stage.wait(gang("wide", "q", 4));
  stage.wait(limited(gang("short", "q", 1), seconds(1)));

  EXPECT_EQ(started(stage.plan()), (Ids{}));
}

constexpr seconds kLength{4};

/// Two small gangs a second, each running for four seconds, on eight GPUs, from before the
/// submission of the wide gang: no node is ever free. Returns how long the wide gang waits.
std::optional<seconds> wait_of_wide_gang(Options options, bool known,
                                         const std::string& wide_project) {
  Stage stage({node("n0", 4), node("n1", 4)},
              {project("q", {.deserved = 4}), project("other", {.deserved = 4})}, options);
  std::deque<std::pair<Time, std::string>> running;
  int number = 0;
  constexpr int kMostSeconds = 4000;
  for (int second = 0; second < kMostSeconds; ++second) {
    while (!running.empty() && running.front().first <= stage.now) {
      stage.end(running.front().second);
      running.pop_front();
    }
    if (second == 100) {
      Gang wide = gang("wide", wide_project, 4, wide_project == "q" ? 2 : 1);
      wide.submitted = stage.now;
      stage.wait(wide);
    }
    for (int i = 0; i < 2; ++i) {
      Gang small = gang("s" + std::to_string(number++), "q", 1);
      small.submitted = stage.now;
      if (known) small.time_limit = kLength;
      stage.wait(small);
    }
    const Plan plan = stage.plan(kAllocate);
    for (const PlannedStart& start : plan.starts) {
      if (start.id == "wide") return seconds(second - 100);
      running.emplace_back(stage.now + kLength, start.id);
    }
    stage.now += seconds(1);
  }
  return std::nullopt;
}

TEST(Starvation, AWideGangWaitsAtMostForRunningGangsIfTheirEndsAreKnown) {
  const auto waited = wait_of_wide_gang({}, true, "q");
  ASSERT_TRUE(waited);
  EXPECT_LE(*waited, kLength);
}

TEST(Starvation, AWideGangWaitsAtMostForItsPatienceAndThenForRunningGangs) {
  Options options;
  options.patience = seconds(300);
  for (const char* project : {"q", "other"}) {
    const auto waited = wait_of_wide_gang(options, false, project);
    ASSERT_TRUE(waited) << project;
    EXPECT_LE(*waited, options.patience + kLength + seconds(1)) << project;
  }
}

/// Whether "small" has to wait because resources are kept for "wide", which was submitted long ago.
bool is_kept_for_wide(Stage& stage) {
  stage.wait(gang("small", "q", 1));
  const Plan plan = stage.plan(kAllocate);
  return reason_of(plan, "small").constraint == Constraint::kReserved;
}

TEST(Patience, CountsOnlyTheTimeSinceTheGangWaits) {
  Stage stage({node("n0", 4)}, one_ample_project());
  stage.run(gang("r", "q", 2), {"n0"});
  stage.plan();
  stage.now += std::chrono::hours(1);
  stage.wait(gang("wide", "q", 4));
  stage.plan(kAllocate);
  ASSERT_FALSE(is_kept_for_wide(stage)) << "it was held until now";
  stage.end("small");

  stage.now += std::chrono::minutes(11);
  stage.plan(kAllocate);
  EXPECT_TRUE(is_kept_for_wide(stage));
}

TEST(Patience, BeginsAnewWhenTheGangWasEvicted) {
  Stage stage({node("n0", 4)}, {project("q", {.deserved = 2}), project("p", {.deserved = 4})});
  stage.wait(gang("wide", "p", 4));
  ASSERT_EQ(started(stage.plan()), (Ids{"wide"}));
  stage.now += std::chrono::hours(1);

  stage.scheduler.released("wide", {0});
  stage.run(gang("r", "q", 2), {"n0"});
  stage.plan(kAllocate);
  ASSERT_FALSE(is_kept_for_wide(stage));
  stage.end("small");

  stage.now += std::chrono::minutes(11);
  stage.plan(kAllocate);
  EXPECT_TRUE(is_kept_for_wide(stage));
}

TEST(Patience, CountsTheWaitForAnEarlierSchedulerAndOfAGangThatIsSubmittedAgainAtOnce) {
  Stage stage({node("n0", 4)}, one_ample_project());
  stage.now += std::chrono::minutes(11);
  stage.run(gang("r", "q", 2), {"n0"});
  stage.wait(gang("wide", "q", 4));
  stage.plan(kAllocate);

  stage.end("wide");
  stage.wait(gang("wide", "q", 4));
  stage.plan(kAllocate);

  EXPECT_TRUE(is_kept_for_wide(stage));
}

TEST(Patience, LastsWhenTheGangLosesAPromise) {
  Stage stage({node("n0", 5)}, {project("q", {.deserved = 5}), project("p", {.deserved = 0})});
  stage.run(gang("r", "p", 4), {"n0"});
  stage.wait(gang("wide", "q", 5));
  stage.plan(kAllocate);
  stage.now += std::chrono::minutes(9);
  stage.scheduler.set_node(node("n1", 0));  // the pool is planned again
  const Plan plan = stage.plan();
  ASSERT_EQ(testing::promised(plan), (Ids{"wide"}));

  Node cordoned = node("n0", 5);
  cordoned.cordoned = true;
  stage.scheduler.set_node(cordoned);
  stage.scheduler.set_node(node("n0", 5));
  stage.now += std::chrono::minutes(2);
  stage.plan(kAllocate);

  EXPECT_TRUE(is_kept_for_wide(stage));
}

/// "t" of project p runs on six of eight GPUs, and "wide" of project q, whose limit is six GPUs, has a
/// reservation for six.
class AtTheLimit : public ::testing::Test {
 protected:
  AtTheLimit() {
    stage_.run(gang("t", "p", 6), {"n0"});
    stage_.wait(gang("wide", "q", 6));
    stage_.plan();
    stage_.now += std::chrono::minutes(11);
    stage_.plan();
  }

  Stage stage_{{node("n0", 8)},
               {project("p", {.deserved = 8}), project("q", {.deserved = 6, .limit = 6})}};
};

TEST_F(AtTheLimit, AReservationAlsoCoversTheLimitOfTheProject) {
  stage_.wait(gang("small", "q", 2));
  const Plan plan = stage_.plan();
  EXPECT_EQ(started(plan), (Ids{})) << "the limit would not suffice for both";
  const WaitReason reason = reason_of(plan, "small");
  EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
  EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;
  EXPECT_EQ(stage_.scheduler.explain("small", stage_.now).constraint, Constraint::kReserved);
  EXPECT_TRUE(stage_.scheduler.forecast(gang("next", "q", 2), stage_.now).start.empty());

  stage_.wait(gang("other", "p", 2));
  EXPECT_EQ(started(stage_.plan()), (Ids{"other"})) << "another project has another limit";
  stage_.end("t");
  EXPECT_EQ(started(stage_.plan()), (Ids{"wide"}));
  stage_.end("wide");
  EXPECT_EQ(started(stage_.plan()), (Ids{"small"}));
}

TEST_F(AtTheLimit, TheReservationEndsWithItsGang) {
  stage_.wait(gang("small", "q", 2));
  ASSERT_EQ(started(stage_.plan()), (Ids{}));
  stage_.end("wide");
  EXPECT_EQ(started(stage_.plan()), (Ids{"small"}));
}

TEST_F(AtTheLimit, AGangKeepsItsReservationIfItMayUseAnotherPoolAsWell) {
  stage_.scheduler.set_node(node("m0", 1, "second"));
  stage_.scheduler.set_pools("wide", {"default", "second"});
  stage_.wait(gang("small", "q", 2));
  EXPECT_EQ(started(stage_.plan()), (Ids{}));
  EXPECT_EQ(stage_.scheduler.explain("small", stage_.now).constraint, Constraint::kReserved);

  stage_.scheduler.set_pools("wide", {"second"});
  EXPECT_EQ(started(stage_.plan()), (Ids{"small"}));
  EXPECT_FALSE(stage_.scheduler.is_stale());
  EXPECT_FALSE(stage_.scheduler.has_wrong_node_books());
}

/// "t" of project p runs on n0. "a" and "b" of project q, whose limit is nine GPUs, have reservations for
/// five and three GPUs there, and "low" of project q runs on one of the two GPUs of n1.
class AtTheLimitTogether : public ::testing::Test {
 protected:
  AtTheLimitTogether() {
    stage_.run(gang("t", "p", 8), {"n0"});
    stage_.run(gang("low", "q", 1), {"n1"});
    stage_.wait(gang("a", "q", 5));
    stage_.wait(gang("b", "q", 3));
    stage_.plan();
    stage_.now += std::chrono::minutes(11);
    stage_.plan();
  }

  Stage stage_{{node("n0", 8), node("n1", 2)},
               {project("p", {.deserved = 8}), project("q", {.deserved = 9, .limit = 9})}};
};

TEST_F(AtTheLimitTogether, TwoReservationsCoverTheLimitOfTheProject) {
  stage_.end("low");
  stage_.wait(gang("small", "q", 2));
  const Plan plan = stage_.plan();
  EXPECT_EQ(started(plan), (Ids{})) << "each of the two could start beside it, but not both";
  const WaitReason reason = reason_of(plan, "small");
  EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
  EXPECT_NE(reason.text.find("'b'"), std::string::npos) << reason.text;
  EXPECT_EQ(stage_.scheduler.explain("small", stage_.now).constraint, Constraint::kReserved);
  EXPECT_TRUE(stage_.scheduler.forecast(gang("next", "q", 2), stage_.now).start.empty());

  stage_.wait(gang("tiny", "q", 1));
  EXPECT_EQ(started(stage_.plan()), (Ids{"tiny"})) << "the limit suffices for all three";
  stage_.end("t");
  EXPECT_EQ(started(stage_.plan()), (Ids{"a", "b"}));
}

TEST_F(AtTheLimitTogether, AMoreImportantGangDoesNotBreakThemByEviction) {
  stage_.wait(gang("high", "q", 2, 1, testing::kBuildPreempt));
  EXPECT_EQ(testing::evicted(stage_.plan()), (Ids{}));
  stage_.end("t");
  EXPECT_EQ(started(stage_.plan()), (Ids{"a", "b"}));
}

// "old", which is over its quota, has the older reservation, but "wide" need not respect it. The limit
// does not suffice for both.
TEST(LimitOfParent, IsKeptForAGangWithinItsQuotaDespiteAnOlderReservationOverQuota) {
  Node bare = node("n2", 8);
  bare.cpu_milli = 1;  // too little for "old"
  Stage stage({node("n0", 9), node("n1", 2), bare},
              {project("p", {.deserved = 11}), project("top", {.deserved = 10, .limit = 10}),
               project("a", {.parent = "top"}), project("b", {.deserved = 9, .parent = "top"}),
               project("c", {.parent = "top"})});
  stage.run(gang("t0", "p", 9), {"n0"});
  stage.run(gang("t1", "p", 2), {"n1"});
  for (const Gang& reserved : {with_cpus(gang("old", "a", 2), 1), gang("wide", "b", 9)}) {
    stage.wait(reserved);
    stage.plan(kAllocate);
    stage.now += std::chrono::minutes(11);
    stage.plan(kAllocate);
  }

  stage.wait(gang("small", "c", 8));
  const Plan plan = stage.plan(kAllocate);

  EXPECT_EQ(started(plan), (Ids{})) << "the limit would not suffice for it and for 'wide'";
  const WaitReason reason = reason_of(plan, "small");
  EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
  EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;
  stage.end("t0");
  EXPECT_EQ(started(stage.plan(kAllocate)), (Ids{"wide"}));
}

/// "t" of project p runs for 100 s on six of ten GPUs, and "wide" of project q, whose limit is six
/// GPUs, is to start after it.
class AtTheLaterLimit : public ::testing::Test {
 protected:
  AtTheLaterLimit() {
    stage_.run(limited(gang("t", "p", 6), seconds(101)), {"n0"});
    stage_.wait(gang("wide", "q", 6));
  }

  Stage stage_{{node("n0", 8), node("n1", 2)},
               {project("p", {.deserved = 8}), project("q", {.deserved = 6, .limit = 6})}};
};

TEST(LaterLimits, AreTakenByAReservedStartFromThisStartOn) {
  Stage stage({node("n0", 4), node("n1", 4), node("n2", 2)},
              {project("p", {.deserved = 4}), project("q", {.deserved = 10, .limit = 10})});
  stage.run(limited(gang("r", "q", 4), seconds(101)), {"n0"});
  stage.run(limited(gang("t", "p", 4), seconds(11)), {"n1"});
  stage.wait(gang("a", "q", 4));
  stage.wait(gang("b", "q", 3));
  stage.wait(gang("c", "q", 2));

  EXPECT_EQ(started(stage.plan()), (Ids{"c"}));
}

TEST_F(AtTheLaterLimit, TheReasonNamesTheGangWithTheReservedStartWhicheverGangTriesToPass) {
  stage_.wait(gang("small", "q", 3));
  stage_.wait(limited(gang("short", "q", 3), seconds(50)));

  const WaitReason reason = reason_of(stage_.plan(), "small");
  EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;
}

TEST_F(AtTheLaterLimit, AReservedStartAlsoCoversTheLimitOfTheProject) {
  stage_.wait(gang("small", "q", 2));
  const Plan plan = stage_.plan();
  EXPECT_EQ(started(plan), (Ids{})) << "the limit would not suffice for both";
  const WaitReason reason = reason_of(plan, "small");
  EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
  EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;

  stage_.wait(gang("other", "p", 2));
  EXPECT_EQ(started(stage_.plan()), (Ids{"other"})) << "another project has another limit";
  stage_.end("t");
  EXPECT_EQ(started(stage_.plan()), (Ids{"wide"}));
  stage_.end("wide");
  EXPECT_EQ(started(stage_.plan()), (Ids{"small"}));
}

TEST_F(AtTheLaterLimit, GangsThatEndBeforeTheReservedStartUseTheLimit) {
  stage_.wait(gang("small", "q", 2));
  stage_.wait(limited(gang("short", "q", 2), seconds(100)));

  EXPECT_EQ(started(stage_.plan()), (Ids{"short"}));
}

TEST_F(AtTheLaterLimit, WhatEndsBeforeTheReservedStartLeavesItsLimit) {
  stage_.run(limited(gang("ends", "q", 2), seconds(51)), {"n1"});
  stage_.scheduler.set_projects(
      {project("p", {.deserved = 8}), project("q", {.deserved = 6, .limit = 8})});
  stage_.wait(gang("small", "q", 2));

  EXPECT_EQ(started(stage_.plan()), (Ids{"small"}));
}

// The second gang cannot start when the tasks on its nodes end: by then, the first one has the limit.
TEST(Starvation, NothingIsReservedForAGangThatALimitKeepsFromItsStart) {
  Stage stage({node("n0", 8), node("n1", 8)},
              {project("p", {.deserved = 8}), project("q", {.deserved = 8, .limit = 8})});
  stage.run(limited(gang("t0", "p", 8), seconds(101)), {"n0"});
  stage.run(limited(gang("t1", "p", 4), seconds(101)), {"n1"});
  stage.wait(gang("first", "q", 8));
  stage.wait(gang("second", "q", 7));
  stage.wait(gang("other", "p", 4));

  EXPECT_EQ(started(stage.plan()), (Ids{"other"}));
}

TEST(Starvation, AMoreImportantGangOfTheProjectTakesTheLimitNotByEvictionEither) {
  Stage stage({node("n0", 8)},
              {project("p", {.deserved = 8}), project("q", {.deserved = 5, .limit = 5})});
  stage.run(gang("t", "p", 4), {"n0"});
  stage.run(gang("low", "q", 1), {"n0"});
  stage.wait(gang("wide", "q", 4));
  stage.plan();
  stage.now += std::chrono::minutes(11);
  stage.plan();

  stage.wait(gang("high", "q", 4, 1, testing::kBuildPreempt));
  EXPECT_EQ(testing::evicted(stage.plan()), (Ids{}));
  stage.end("t");
  EXPECT_EQ(started(stage.plan()), (Ids{"wide"}));
}

TEST(Starvation, TwoReservationsThatALimitDoesNotAllowTogetherDoNotBlockEachOther) {
  Stage stage({node("n0", 8)},
              {project("p", {.deserved = 8}), project("q", {.deserved = 6, .limit = 6})});
  stage.run(gang("t", "p", 8), {"n0"});
  stage.wait(gang("first", "q", 4));
  stage.wait(gang("second", "q", 3));
  stage.plan();
  stage.now += std::chrono::minutes(11);
  stage.plan();
  stage.wait(gang("other", "p", 4));
  stage.plan();

  stage.end("t");
  EXPECT_EQ(started(stage.plan()), (Ids{"first", "other"})) << "nothing is kept for the second";
  stage.end("first");
  EXPECT_EQ(started(stage.plan()), (Ids{"second"}));
}

TEST(Starvation, WithoutReservationsItWouldWaitForEver) {
  Options options;
  options.reservations = 0;
  EXPECT_FALSE(wait_of_wide_gang(options, false, "q"));
}

}  // namespace
}  // namespace muster::schedule
