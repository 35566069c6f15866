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

Told reason_of(const Plan& plan, const std::string& id) {
  for (const WaitingGang& wait : plan.waits) {
    if (wait.id == id) return told(*wait.verdict);
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
    const Told reason = reason_of(plan, "long");
    EXPECT_EQ(reason.constraint, Constraint::kReserved) << reason.text;
    EXPECT_NE(reason.text.find("'wide'"), std::string::npos) << reason.text;
    EXPECT_EQ(stage.scheduler.explain("wide", stage.now).may_start, kStart + seconds(100));
  }
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

TEST(Starvation, WithoutReservationsItWouldWaitForEver) {
  Options options;
  options.reservations = 0;
  EXPECT_FALSE(wait_of_wide_gang(options, false, "q"));
}

}  // namespace
}  // namespace muster::schedule
