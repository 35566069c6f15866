#include "control/scheduler_book.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

TEST(AForwardClock, StandsStillWhenTheOtherClockIsSetBackAndThenContinuesWithIt) {
  base::FakeClock clock;
  const ForwardClock forward(clock);
  const base::Time start = forward.now();

  clock.advance(std::chrono::hours(-1));
  EXPECT_EQ(forward.now(), start);
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(forward.now(), start + std::chrono::seconds(5));
}

TEST(AForwardClock, PutsATimeOfTheOtherInItsPlaceButNotAfterNow) {
  base::FakeClock clock;
  const ForwardClock forward(clock);
  const base::Time start = forward.now();
  clock.advance(std::chrono::hours(-1));
  EXPECT_EQ(forward.of(start), forward.now());

  clock.advance(std::chrono::seconds(5));
  const base::Time noted = clock.now();
  clock.advance(std::chrono::seconds(7));
  EXPECT_EQ(forward.now() - forward.of(noted), std::chrono::seconds(7));
}

}  // namespace
}  // namespace muster::control
