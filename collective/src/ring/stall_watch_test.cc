#include "ring/stall_watch.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using Verdict = StallWatch::Verdict;

constexpr milliseconds kTimeout{4000};  // and so a grace of 1000
const Deadline kStart = Deadline() + std::chrono::hours(1);

StallWatch started() {
  StallWatch watch(kTimeout);
  watch.progress(kStart);
  return watch;
}

TEST(StallWatch, WaitsUntilTheTimeout) {
  StallWatch watch = started();
  EXPECT_EQ(watch.next(), kStart + kTimeout);
  EXPECT_EQ(watch.check(kStart + kTimeout - milliseconds(1), true, true), Verdict::kWait);
}

TEST(StallWatch, AsksBeforeItBlames) {
  StallWatch watch = started();
  EXPECT_EQ(watch.check(kStart + milliseconds(4000), true, false), Verdict::kProbe);
  EXPECT_EQ(watch.check(kStart + milliseconds(4999), true, false), Verdict::kWait);
  EXPECT_EQ(watch.check(kStart + milliseconds(5000), true, false), Verdict::kLeftSilent);
}

TEST(StallWatch, BlamesTheSideThatDoesNotAnswer) {
  StallWatch watch = started();
  EXPECT_EQ(watch.check(kStart + milliseconds(4000), true, true), Verdict::kProbe);
  watch.answered(Side::kLeft);
  EXPECT_EQ(watch.check(kStart + milliseconds(5000), true, true), Verdict::kRightSilent);
}

TEST(StallWatch, GivesMoreTimeToWhoAnswers) {
  StallWatch watch = started();
  EXPECT_EQ(watch.check(kStart + milliseconds(4000), true, false), Verdict::kProbe);
  watch.answered(Side::kLeft);
  EXPECT_EQ(watch.check(kStart + milliseconds(5000), true, false), Verdict::kWait);
  EXPECT_EQ(watch.next(), kStart + milliseconds(9000));
}

TEST(StallWatch, ForgetsItsQuestionWhenSomethingMoves) {
  StallWatch watch = started();
  EXPECT_EQ(watch.check(kStart + milliseconds(4000), true, false), Verdict::kProbe);
  watch.progress(kStart + milliseconds(4500));
  EXPECT_EQ(watch.check(kStart + milliseconds(5000), true, false), Verdict::kWait);
  EXPECT_EQ(watch.next(), kStart + milliseconds(8500));
}

TEST(StallWatch, DoesNotWaitForEverForNeighboursThatOnlyAnswer) {
  StallWatch watch = started();
  Verdict verdict = Verdict::kWait;
  int probes = 0;
  for (Deadline now = kStart; verdict != Verdict::kStuck; now = watch.next()) {
    verdict = watch.check(now, true, false);
    if (verdict != Verdict::kProbe) continue;
    ASSERT_LT(++probes, 10);
    watch.answered(Side::kLeft);
  }
  EXPECT_EQ(probes, 3);
}

}  // namespace
}  // namespace muster::collective
