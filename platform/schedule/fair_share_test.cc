#include <gtest/gtest.h>

#include <optional>

#include "schedule/ledger.h"
#include "schedule/test_books.h"

namespace muster::schedule {

namespace {

/// In units, as the upstream vectors are written.
struct Queue {
  double deserved = 0;
  double weight = 0;
  std::optional<double> limit;
  double request = 0;
  int priority = 100;
  uint64_t created = 0;  ///< 0: in the order of the list
};

struct Vector {
  std::string name;
  double total = 0;
  std::vector<Queue> queues;
  std::vector<double> shares;
  double left = 0;
};

constexpr int64_t kUnit = 1000;

FairShares shares_of_vector(const Vector& vector) {
  std::vector<Claimant> claimants;
  for (const Queue& queue : vector.queues) {
    claimants.push_back({.deserved = queue.deserved < 0 ? kUnlimited : milli(queue.deserved),
                         .limit = queue.limit ? milli(*queue.limit) : kUnlimited,
                         .request = milli(queue.request),
                         .weight = queue.weight,
                         .priority = queue.priority,
                         .sequence = queue.created != 0 ? queue.created : claimants.size() + 1});
  }
  return fair_shares(milli(vector.total), claimants, kUnit);
}

constexpr auto kNone = std::nullopt;

// The unit vectors of KAI Scheduler's resource_division_test.go, all of them.
const std::vector<Vector> kVectors = {
    {"request below the quota", 2, {{3, 0, kNone, 2}}, {2}, 0},
    {"the rest of the quota is left", 3, {{3, 0, kNone, 2}}, {2}, 1},
    {"the limit cuts the quota", 3, {{3, 0, 2, 3}}, {2}, 1},
    {"a limit at the request", 3, {{3, 0, 2, 2}}, {2}, 1},
    {"a quota is honoured though there is less", 1, {{3, 0, kNone, 2}}, {2}, 0},
    {"no weight, nothing over quota", 7, {{3, 0, kNone, 5}}, {3}, 4},
    {"part of a GPU deserved", 2, {{1.5, 0, kNone, 2}}, {1.5}, 0.5},
    {"part of a GPU requested", 2, {{3, 0, kNone, 1.5}}, {1.5}, 0.5},
    {"neither quota nor weight", 2, {{0, 0, kNone, 2}}, {0}, 2},
    // The quota of 3, and different amounts above it: 2, 3, 2, 2, 0.5.
    {"over quota: 2 left over for 2 more", 3 + 2, {{3, 1, kNone, 5}}, {5}, 0},
    {"over quota: 3 left over for 2 more", 3 + 3, {{3, 1, kNone, 5}}, {5}, 1},
    {"over quota: 2 left over, limit 4", 3 + 2, {{3, 1, 4, 5}}, {4}, 1},
    {"over quota: 2 left over, request 4.5", 3 + 2, {{3, 1, kNone, 4.5}}, {4.5}, 0.5},
    {"over quota: half a GPU left over", 3 + 0.5, {{3, 1, kNone, 5}}, {3.5}, 0},
    {"two with room to spare", 15, {{2, 2, kNone, 6}, {2, 2, kNone, 6}}, {6, 6}, 3},
    {"two with just enough", 12, {{2, 2, kNone, 6}, {2, 2, kNone, 6}}, {6, 6}, 0},
    {"by weight", 8, {{2, 1, kNone, 6}, {2, 3, kNone, 6}}, {3, 5}, 0},
    {"what a limit keeps out stays", 12, {{2, 2, 5, 6}, {2, 2, kNone, 6}}, {5, 6}, 1},
    {"largest remainder", 11, {{2, 1, kNone, 10}, {2, 4, kNone, 10}}, {3, 8}, 0},
    {"the older of equal remainders", 11, {{2, 2, kNone, 6}, {2, 2, kNone, 6}}, {6, 5}, 0},
    {"the older of equal remainders, listed last",
     11,
     {{2, 2, kNone, 6, 100, 9}, {2, 2, kNone, 6, 100, 8}},
     {5, 6},
     0},
    {"priority does not touch quotas", 4, {{2, 2, kNone, 6, 1}, {2, 2, kNone, 6, 2}}, {2, 2}, 0},
    {"priority takes all over quota", 6, {{2, 2, kNone, 6, 1}, {2, 2, kNone, 6, 2}}, {2, 4}, 0},
    {"priority goes before weight", 6, {{2, 100, kNone, 6, 1}, {2, 1, kNone, 6, 2}}, {2, 4}, 0},
    {"the last unit stays in its priority",
     5,
     {{2, 2, kNone, 5, 2}, {2, 2, kNone, 5, 2}, {1, 2, kNone, 0, 1}},
     {3, 2, 0},
     0},
    {"no quota and no weight against both",
     10000,
     {{5000, 5000, kNone, 10000}, {0, 0, kNone, 5000}},
     {10000, 0},
     0},
    {"oversubscribed quotas",
     10000,
     {{5000, 5000, kNone, 5000}, {5000, 5000, kNone, 5000}, {5000, 5000, kNone, 5000}},
     {5000, 5000, 5000},
     0},
    {"everybody over quota and satisfied",
     18000,
     {{5000, 5000, kNone, 6000}, {5000, 5000, kNone, 6000}, {5000, 5000, kNone, 6000}},
     {6000, 6000, 6000},
     0},
    {"what two do not need goes to the third",
     10000,
     {{5000, 5000, kNone, 7000}, {5000, 5000, kNone, 2000}, {5000, 5000, kNone, 2000}},
     {6000, 2000, 2000},
     0},
    {"nothing is left when quotas are used up",
     10000,
     {{5000, 5000, kNone, 7000}, {5000, 5000, kNone, 5000}, {5000, 5000, kNone, 2000}},
     {5000, 5000, 2000},
     0},
    {"weights 1 and 2", 1000, {{250, 1, kNone, 5000}, {150, 2, kNone, 5000}}, {450, 550}, 0},
    {"weights 1 and 2, a limit", 1000, {{250, 1, kNone, 5000}, {150, 2, 400, 5000}}, {600, 400}, 0},
    {"three alike",
     9999,
     {{1000, 1, kNone, 10000}, {1000, 1, kNone, 10000}, {1000, 1, kNone, 10000}},
     {3333, 3333, 3333},
     0},
    {"weights 6, 2 and 1",
     9999,
     {{0, 6, kNone, 10000}, {0, 2, kNone, 10000}, {0, 1, kNone, 10000}},
     {6666, 2222, 1111},
     0},
    {"parts of a GPU are given to those who are satisfied",
     45,
     {{12, 12, kNone, 32.55}, {7, 7, kNone, 9.5}, {2, 2, 2, 1.65}},
     {32.55, 9.5, 1.65},
     1.3},
    {"of one age, the first in the list",
     5,
     {{2, 2, kNone, 3, 100, 7}, {2, 2, kNone, 3, 100, 7}},
     {3, 2},
     0},
};

TEST(FairShare, AnswersEveryUpstreamVector) {
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(vector.name);
    const FairShares got = shares_of_vector(vector);
    ASSERT_EQ(got.share.size(), vector.shares.size());
    for (size_t i = 0; i < vector.shares.size(); ++i) {
      EXPECT_EQ(got.share[i], milli(vector.shares[i])) << "queue " << i;
    }
    EXPECT_EQ(got.left, milli(vector.left)) << "left";
  }
}

TEST(FairShare, AnUnlimitedQuotaDeservesTheTotal) {
  EXPECT_EQ(shares_of_vector({.total = 8, .queues = {{-1, 0, kNone, 10}, {2, 0, kNone, 3}}}).share,
            (std::vector<int64_t>{8000, 2000}));
}

TEST(FairShare, HandsOutNoMoreOfTheLastUnitThanIsMissing) {
  EXPECT_EQ(
      shares_of_vector({.total = 1, .queues = {{0, 6, kNone, 0.65}, {0, 4, kNone, 10}}}).share,
      (std::vector<int64_t>{650, 350}));
}

TEST(FairShare, SharesOutBytesExactly) {
  constexpr int64_t kTotal = (int64_t{1} << 60) + 7;
  const Claimant hungry{.request = kUnlimited, .weight = 1};

  const FairShares shares = fair_shares(kTotal, {hungry, hungry, hungry}, 1);

  EXPECT_EQ(shares.share, (std::vector<int64_t>{kTotal / 3 + 1, kTotal / 3 + 1, kTotal / 3}));
  EXPECT_EQ(kTotal % 3, 2);
  EXPECT_EQ(shares.left, 0);
}

TEST(FairShare, HoldsWithEverythingUnlimited) {
  const Claimant all{.deserved = kUnlimited, .request = kUnlimited, .weight = 1e300};
  const std::vector<Claimant> claimants(1000, all);

  const FairShares shares = fair_shares(kUnlimited, claimants, 1);

  EXPECT_EQ(shares.share, std::vector<int64_t>(1000, kUnlimited));
  EXPECT_EQ(shares.left, 0);
}

TEST(FairShare, CountsNonsenseAsNothing) {
  const double nan = std::nan("");
  const FairShares shares = fair_shares(
      -5, {{.deserved = -3, .request = 4, .weight = 1}, {.request = -4, .weight = 1}}, kUnit);
  EXPECT_EQ(shares.share, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(fair_shares(5000, {{.request = 9000, .weight = nan}}, kUnit).left, 5000);
  EXPECT_EQ(fair_shares(5000, {{.request = 9000, .weight = -1}}, kUnit).left, 5000);
  EXPECT_EQ(fair_shares(5000, {}, kUnit).left, 5000);
}

TEST(FairShare, AVastlySmallerWeightIsNotNone) {
  const FairShares shares = fair_shares(
      1'000'000, {{.request = 10, .weight = 1e9}, {.request = 900'000, .weight = 1e-9}}, 1);
  EXPECT_EQ(shares.share, (std::vector<int64_t>{10, 900'000}));
}

TEST(FairShare, PastUseCostsShareByItsDecay) {
  const Claimant frugal{.request = 100, .weight = 1, .past_use = 0.1};
  const Claimant heavy{.request = 100, .weight = 1, .past_use = 0.9};

  EXPECT_EQ(fair_shares(100, {frugal, heavy}, 1).share, (std::vector<int64_t>{50, 50}));
  // Half each, minus past use times 0.5 relative to the half: 0.7 and 0.3.
  EXPECT_EQ(fair_shares(100, {frugal, heavy}, 1, 0.5).share, (std::vector<int64_t>{70, 30}));
  // 0.5 + 2 x (0.5 - 0.9) is negative.
  EXPECT_EQ(fair_shares(100, {frugal, heavy}, 1, 2).share, (std::vector<int64_t>{100, 0}));
}

}  // namespace

}  // namespace muster::schedule
