#include "access/limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::access {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr base::Time kStart{seconds(1'000'000)};

void fail(FailedLogins& logins, const std::string& address, base::Time now, int times) {
  for (int i = 0; i < times; ++i) logins.failed(address, now);
}

TEST(FailedLogins, TheFirstAttemptsAreFree) {
  FailedLogins logins({.free_tries = 3});

  fail(logins, "a", kStart, 2);
  EXPECT_EQ(logins.wait("a", kStart), std::nullopt);
  fail(logins, "a", kStart, 1);
  EXPECT_EQ(logins.wait("a", kStart), seconds(1));
}

TEST(FailedLogins, EachFurtherFailureDoublesTheWaitUpToTheLongest) {
  FailedLogins logins({.free_tries = 1, .longest = seconds(10)});
  base::Time now = kStart;
  std::vector<seconds> waits;
  for (int i = 0; i < 6; ++i) {
    logins.failed("a", now);
    waits.push_back(*logins.wait("a", now));
    now += waits.back();
  }
  EXPECT_EQ(waits, (std::vector{seconds(1), seconds(2), seconds(4), seconds(8), seconds(10),
                                seconds(10)}));
}

TEST(FailedLogins, AThousandFailuresCauseNoMoreThanTheLongestWait) {
  FailedLogins logins({.free_tries = 1, .longest = seconds(900)});
  fail(logins, "a", kStart, 1000);
  EXPECT_EQ(logins.wait("a", kStart), seconds(900));
}

TEST(FailedLogins, TheWaitEndsExactlyOnTime) {
  FailedLogins logins({.free_tries = 1});
  logins.failed("a", kStart);

  EXPECT_EQ(logins.wait("a", kStart + milliseconds(1)), seconds(1));
  EXPECT_EQ(logins.wait("a", kStart + milliseconds(999)), seconds(1));
  EXPECT_EQ(logins.wait("a", kStart + seconds(1)), std::nullopt);
}

TEST(FailedLogins, AreCountedPerAddress) {
  FailedLogins logins({.free_tries = 1});
  logins.failed("a", kStart);
  EXPECT_EQ(logins.wait("b", kStart), std::nullopt);
}

TEST(FailedLogins, AreForgottenAfterAQuietTimeBeyondTheWait) {
  FailedLogins logins({.free_tries = 2, .window = seconds(60)});
  fail(logins, "a", kStart, 1);
  fail(logins, "a", kStart + seconds(61), 1);
  EXPECT_EQ(logins.wait("a", kStart + seconds(61)), std::nullopt);

  fail(logins, "a", kStart + seconds(62), 1);
  EXPECT_EQ(logins.wait("a", kStart + seconds(62)), seconds(1));
  // One second of waiting and sixty quiet seconds are not over yet: the wait continues to double.
  fail(logins, "a", kStart + seconds(123), 1);
  EXPECT_EQ(logins.wait("a", kStart + seconds(123)), seconds(2));
}

TEST(FailedLogins, AClockThatIsSetBackProlongsNoWaitBeyondTheLongest) {
  FailedLogins logins({.free_tries = 1, .longest = seconds(900)});
  logins.failed("a", kStart + std::chrono::hours(24));
  EXPECT_EQ(logins.wait("a", kStart), seconds(900));
  EXPECT_EQ(logins.wait("a", kStart + seconds(600)), seconds(300));
  EXPECT_EQ(logins.wait("a", kStart + seconds(900)), std::nullopt);
}

TEST(FailedLogins, OfTooManyAddressesTheQuietestAreForgotten) {
  FailedLogins logins({.free_tries = 1, .longest = seconds(900), .most_addresses = 100});
  fail(logins, "early", kStart, 12);
  for (int i = 0; i < 99; ++i) fail(logins, std::to_string(i), kStart + seconds(i + 1), 12);
  const base::Time now = kStart + seconds(200);
  EXPECT_NE(logins.wait("early", now), std::nullopt);
  EXPECT_EQ(logins.remembered(), 100u);

  logins.failed("one more", now);

  EXPECT_EQ(logins.wait("early", now), std::nullopt);
  EXPECT_NE(logins.wait("98", now), std::nullopt);
  EXPECT_LE(logins.remembered(), 100u);
}

TEST(FailedLogins, ManyAddressesUseBoundedMemory) {
  FailedLogins logins({.most_addresses = 100});
  for (int i = 0; i < 10'000; ++i) {
    logins.failed(std::to_string(i), kStart);
    ASSERT_LE(logins.remembered(), 100u);
  }
}

TEST(FailedLogins, AddressesWithExpiredFailuresAreRemovedFirst) {
  FailedLogins logins({.free_tries = 1, .window = seconds(60), .most_addresses = 10});
  for (int i = 0; i < 9; ++i) logins.failed("old " + std::to_string(i), kStart);
  logins.failed("young", kStart + seconds(90));

  logins.failed("new", kStart + seconds(90));

  EXPECT_EQ(logins.remembered(), 2u);
  EXPECT_EQ(logins.wait("young", kStart + seconds(90)), seconds(1));
}

TEST(RequestRate, AllowsABurstAndThenItsRate) {
  RequestRate rate(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rate.take("a", kStart), std::nullopt);
  EXPECT_EQ(rate.take("a", kStart), milliseconds(100));
  EXPECT_EQ(rate.take("a", kStart + milliseconds(50)), milliseconds(50));
  EXPECT_EQ(rate.take("a", kStart + milliseconds(100)), std::nullopt);
  EXPECT_EQ(rate.take("a", kStart + milliseconds(100)), milliseconds(100));
}

TEST(RequestRate, AllowsACallerAfterTheReturnedWait) {
  RequestRate rate(3, 1);
  base::Time now = kStart;
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(rate.take("a", now), std::nullopt) << i;
    const auto wait = rate.take("a", now);
    ASSERT_TRUE(wait) << i;
    now += *wait;
  }
}

TEST(RequestRate, AccumulatesNoMoreThanABurst) {
  RequestRate rate(10, 3);
  EXPECT_EQ(rate.take("a", kStart), std::nullopt);
  const base::Time later = kStart + minutes(60);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rate.take("a", later), std::nullopt);
  EXPECT_NE(rate.take("a", later), std::nullopt);
}

TEST(RequestRate, IsSeparateForEachCaller) {
  RequestRate rate(10, 1);
  EXPECT_EQ(rate.take("a", kStart), std::nullopt);
  EXPECT_NE(rate.take("a", kStart), std::nullopt);
  EXPECT_EQ(rate.take("b", kStart), std::nullopt);
}

TEST(RequestRate, AClockThatIsSetBackBlocksNoCallerForLong) {
  RequestRate rate(10, 1);
  EXPECT_EQ(rate.take("a", kStart), std::nullopt);
  const base::Time earlier = kStart - minutes(60);
  EXPECT_EQ(rate.take("a", earlier), milliseconds(100));
  EXPECT_EQ(rate.take("a", earlier + milliseconds(100)), std::nullopt);
}

TEST(RequestRate, ManyCallersUseBoundedMemory) {
  RequestRate rate(1, 2);
  for (size_t i = 0; i < 3 * RequestRate::kMostCallers; ++i) {
    EXPECT_EQ(rate.take(std::to_string(i), kStart), std::nullopt);
    ASSERT_LE(rate.remembered(), RequestRate::kMostCallers);
  }
}

TEST(RequestRate, ABusyCallerIsNotForgottenForManyOthers) {
  RequestRate rate(0.001, 2);
  for (size_t i = 0; i < RequestRate::kMostCallers - 1; ++i) {
    EXPECT_EQ(rate.take(std::to_string(i), kStart), std::nullopt);
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rate.take("busy", kStart + seconds(1)), std::nullopt);
  EXPECT_EQ(rate.take("new", kStart + seconds(2)), std::nullopt);

  EXPECT_NE(rate.take("busy", kStart + seconds(2)), std::nullopt);
}

}  // namespace
}  // namespace muster::access
