#include "notify/happenings.h"

#include <gtest/gtest.h>

#include "notify/test_values.h"

namespace muster::notify {
namespace {

using job::Happening;
using job::Phase;
using Happenings = std::vector<Happening>;

Standing was(Phase phase, std::optional<int> started = std::nullopt) {
  Standing standing{.phase = phase};
  if (started) standing.started = at_second(*started);
  return standing;
}

/// What is told of a job that was `before` and is now in `phase`.
Happenings told(const Standing& before, Phase phase, std::optional<int> started = std::nullopt) {
  job::Job job{.phase = phase};
  if (started) job.started = at_second(*started);
  return happenings_between(before, job);
}

TEST(Happenings, AreTheChangesOfAPhase) {
  EXPECT_EQ(told(was(Phase::kQueued), Phase::kStarting), Happenings{});
  EXPECT_EQ(told(was(Phase::kStarting), Phase::kRunning, 1), Happenings{Happening::kStarted});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kRunning, 1), Happenings{});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kSucceeded, 1), Happenings{Happening::kSucceeded});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kFailed, 1), Happenings{Happening::kFailed});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kStopped, 1), Happenings{Happening::kStopped});
}

TEST(Happenings, OfAJobThatNeverRanAreItsEndAlone) {
  EXPECT_EQ(told(was(Phase::kQueued), Phase::kStopped), Happenings{Happening::kStopped});
  EXPECT_EQ(told(was(Phase::kStarting), Phase::kFailed), Happenings{Happening::kFailed});
  EXPECT_EQ(told(was(Phase::kStarting), Phase::kQueued), Happenings{});
}

TEST(Happenings, ThatCameTogetherAreToldInTheirOrder) {
  EXPECT_EQ(told(was(Phase::kQueued), Phase::kSucceeded, 1),
            (Happenings{Happening::kStarted, Happening::kSucceeded}));
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kFailed, 2),
            (Happenings{Happening::kRequeued, Happening::kStarted, Happening::kFailed}));
}

TEST(Happenings, SayThatAJobThatRanWaitsAgain) {
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kQueued), Happenings{Happening::kRequeued});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kStarting), Happenings{Happening::kRequeued});
  EXPECT_EQ(told(was(Phase::kRunning, 1), Phase::kRunning, 2),
            (Happenings{Happening::kRequeued, Happening::kStarted}));
}

TEST(Happenings, AreNoneOnceAJobHasEnded) {
  EXPECT_EQ(told(was(Phase::kFailed, 1), Phase::kFailed, 1), Happenings{});
}

}  // namespace
}  // namespace muster::notify
