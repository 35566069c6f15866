#include "control/start_conditions.h"

#include <gtest/gtest.h>

#include "words/sentence.h"

namespace muster::control {
namespace {

using EndCondition = job::Dependency::Condition;
using StartWhat = StartDecision::What;
using job::Phase;

const base::Time kDecisionTime = base::Time(std::chrono::hours(24 * 365 * 50));
const job::JobRef kAwaitedPrep{.id = "id-prep", .name = "prep", .project = "lab"};

StartConditions after_prep(EndCondition condition, std::optional<Phase> phase,
                           bool is_met = false) {
  return {.after = {{.end = {.job = kAwaitedPrep, .condition = condition},
                     .is_met = is_met,
                     .phase = phase}}};
}

TEST(DecideStart, FollowsTheEndOfTheOtherJob) {
  const struct {
    EndCondition condition;
    std::optional<Phase> phase;  ///< nothing: deleted
    StartWhat what;
  } table[] = {
      {EndCondition::kOk, Phase::kQueued, StartWhat::kWaits},
      {EndCondition::kOk, Phase::kRunning, StartWhat::kWaits},
      {EndCondition::kOk, Phase::kSucceeded, StartWhat::kMayStart},
      {EndCondition::kOk, Phase::kFailed, StartWhat::kNever},
      {EndCondition::kOk, Phase::kStopped, StartWhat::kNever},
      {EndCondition::kOk, std::nullopt, StartWhat::kNever},
      {EndCondition::kAny, Phase::kStarting, StartWhat::kWaits},
      {EndCondition::kAny, Phase::kSucceeded, StartWhat::kMayStart},
      {EndCondition::kAny, Phase::kFailed, StartWhat::kMayStart},
      {EndCondition::kAny, Phase::kStopped, StartWhat::kMayStart},
      {EndCondition::kAny, std::nullopt, StartWhat::kMayStart},
      {EndCondition::kFailed, Phase::kRunning, StartWhat::kWaits},
      {EndCondition::kFailed, Phase::kSucceeded, StartWhat::kNever},
      {EndCondition::kFailed, Phase::kFailed, StartWhat::kMayStart},
      {EndCondition::kFailed, Phase::kStopped, StartWhat::kMayStart},
      {EndCondition::kFailed, std::nullopt, StartWhat::kNever},
  };
  for (const auto& row : table) {
    EXPECT_EQ(decide_start(after_prep(row.condition, row.phase), kDecisionTime).what, row.what)
        << job::to_string(row.condition) << " "
        << (row.phase ? job::to_string(*row.phase) : "deleted");
  }
}

TEST(DecideStart, KeepsADependencyThatWasMetBeforeTheOtherJobWasDeleted) {
  EXPECT_EQ(decide_start(after_prep(EndCondition::kOk, std::nullopt, true), kDecisionTime).what,
            StartWhat::kMayStart);
}

TEST(DecideStart, EndsTheWaitAsSoonAsOneOfSeveralDependenciesCannotBeMet) {
  StartConditions conditions = after_prep(EndCondition::kOk, Phase::kRunning);
  conditions.after.push_back(after_prep(EndCondition::kFailed, Phase::kSucceeded).after.front());
  conditions.begin = kDecisionTime + std::chrono::hours(1);

  const StartDecision decision = decide_start(conditions, kDecisionTime);

  EXPECT_EQ(decision.what, StartWhat::kNever);
  ASSERT_TRUE(decision.unmet);
  EXPECT_EQ(words::sentence(job::FailureCause(*decision.unmet)),
            "did not start: 'prep' had to fail, but succeeded");
}

TEST(DecideStart, WaitsUntilItsTimeAndNoLonger) {
  const StartConditions conditions{.begin = kDecisionTime};
  const auto early = decide_start(conditions, kDecisionTime - std::chrono::nanoseconds(1));
  EXPECT_EQ(early.what, StartWhat::kWaits);
  EXPECT_EQ(early.constraint, "begin");
  EXPECT_EQ(early.may_start, kDecisionTime);
  EXPECT_EQ(decide_start(conditions, kDecisionTime).what, StartWhat::kMayStart);
}

TEST(DecideStart, WaitsForAServerThatIsolatesItsOwner) {
  const auto decision = decide_start({.unisolated = "ada"}, kDecisionTime);
  EXPECT_EQ(decision.what, StartWhat::kWaits);
  EXPECT_EQ(decision.constraint, "isolation");
  EXPECT_FALSE(decision.may_start);
}

TEST(DecideStart, NamesEveryConditionThatDoesNotHoldYet) {
  StartConditions conditions = after_prep(EndCondition::kOk, Phase::kRunning);
  conditions.singleton = "nightly";
  conditions.ahead = job::JobRef{.id = "id-old", .name = "old", .project = "lab"};
  conditions.begin = kDecisionTime + std::chrono::hours(1);

  const StartDecision decision = decide_start(conditions, kDecisionTime);

  EXPECT_EQ(decision.constraint, "dependency");
  EXPECT_EQ(words::sentence(decision.reason), "starts when 'prep' has succeeded");
  const std::vector<std::string> details = words::details(decision.reason);
  ASSERT_EQ(details.size(), 2U);
  EXPECT_EQ(details[0], "starts when 'old' has ended; both have singleton 'nightly'");
  EXPECT_EQ(details[1], "does not start before 2019-12-20T01:00:00Z");
}

}  // namespace
}  // namespace muster::control
