#include "notify/retry_schedule.h"

#include <gtest/gtest.h>

namespace muster::notify {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr base::Time kNow{seconds(1'700'000'000)};

/// How long after kNow; -1: never.
int64_t pause(int attempts, double dice, std::chrono::nanoseconds age = {}) {
  const auto next = next_attempt({}, kNow - age, kNow, attempts, dice);
  return next ? std::chrono::duration_cast<seconds>(*next - kNow).count() : -1;
}

TEST(RetrySchedule, DoublesThePauseUpToAnHour) {
  const int64_t expected[] = {10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600};
  int attempts = 0;
  for (const int64_t each : expected) EXPECT_EQ(pause(++attempts, 0), each) << attempts;
  EXPECT_EQ(pause(1'000'000, 0), 3600);
}

TEST(RetrySchedule, ShortensThePauseByUpToAHalf) {
  EXPECT_EQ(pause(1, 1), 5);
  EXPECT_EQ(pause(3, 0.5), 30);
}

TEST(RetrySchedule, EndsAfterADayWithALastAttempt) {
  EXPECT_EQ(pause(20, 0, hours(22)), 3600);
  EXPECT_EQ(pause(20, 0, hours(24) - seconds(60)), 60);
  EXPECT_EQ(pause(20, 0, hours(24)), -1);
  EXPECT_EQ(pause(1, 0, hours(25)), -1);
}

TEST(RetrySchedule, KnowsWhatMayBeMended) {
  const struct {
    int status;
    Verdict verdict;
  } cases[] = {{200, Verdict::kArrived}, {202, Verdict::kArrived}, {204, Verdict::kArrived},
               {299, Verdict::kArrived}, {100, Verdict::kAgain},   {301, Verdict::kAgain},
               {302, Verdict::kAgain},   {304, Verdict::kAgain},   {400, Verdict::kNever},
               {401, Verdict::kNever},   {403, Verdict::kNever},   {404, Verdict::kNever},
               {408, Verdict::kAgain},   {409, Verdict::kNever},   {410, Verdict::kGone},
               {413, Verdict::kNever},   {425, Verdict::kAgain},   {429, Verdict::kAgain},
               {500, Verdict::kAgain},   {502, Verdict::kAgain},   {503, Verdict::kAgain},
               {599, Verdict::kAgain}};
  for (const auto& [status, verdict] : cases) EXPECT_EQ(verdict_on(status), verdict) << status;
}

}  // namespace
}  // namespace muster::notify
