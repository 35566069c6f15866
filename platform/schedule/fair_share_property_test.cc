// Properties of fair shares that hold for all claims: on random claims with fixed seeds.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "schedule/ledger.h"

namespace muster::schedule {

namespace {

constexpr int kCases = 10'000;

struct FairShareCase {
  int64_t total = 0;
  int64_t unit = 1;
  std::vector<Claimant> claimants;
};

/// Small numbers hit the corner cases (ties, zero, everything) far more often than large ones.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  int64_t upto(int64_t most) { return static_cast<int64_t>(random_() % (most + 1)); }
  bool one_in(int64_t count) { return upto(count - 1) == 0; }

  FairShareCase fresh() {
    FairShareCase drawn;
    drawn.unit = one_in(2) ? 1000 : 1;
    const int64_t large = one_in(10) ? (int64_t{1} << 50) / drawn.unit : 12;
    drawn.total = upto(3 * large) * drawn.unit + (one_in(4) ? upto(drawn.unit - 1) : 0);
    const int64_t count = upto(6);
    for (int64_t i = 0; i < count; ++i) drawn.claimants.push_back(claimant(large, drawn.unit, i));
    return drawn;
  }

 private:
  Claimant claimant(int64_t large, int64_t unit, int64_t sequence) {
    return {.deserved = one_in(8) ? kUnlimited : upto(large / 2) * unit,
            .limit = one_in(3) ? upto(large) * unit : kUnlimited,
            .request = upto(2 * large) * unit + (one_in(4) ? upto(unit - 1) : 0),
            .weight = one_in(5) ? 0 : static_cast<double>(upto(40) + 1) / 10,
            .priority = static_cast<int>(100 + upto(1)),
            .sequence = static_cast<uint64_t>(sequence)};
  }

  std::mt19937_64 random_;
};

int64_t requestable(const Claimant& claimant) {
  return std::min(claimant.request, claimant.limit);
}

int64_t guaranteed(const Claimant& claimant, int64_t total) {
  return std::min(claimant.deserved == kUnlimited ? total : claimant.deserved,
                  requestable(claimant));
}

FairShares shares_of_draw(const FairShareCase& drawn) {
  return fair_shares(drawn.total, drawn.claimants, drawn.unit);
}

template <class Holds>
void for_all(const Holds& holds) {
  for (unsigned seed = 0; seed < kCases && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    holds(draw.fresh(), draw);
  }
}

TEST(FairShareAlways, GivesDeservedResourcesAndNeverExceedsALimit) {
  for_all([](const FairShareCase& drawn, Draw&) {
    const FairShares shares = shares_of_draw(drawn);
    for (size_t i = 0; i < drawn.claimants.size(); ++i) {
      EXPECT_GE(shares.share[i], guaranteed(drawn.claimants[i], drawn.total));
      EXPECT_LE(shares.share[i], requestable(drawn.claimants[i]));
    }
  });
}

TEST(FairShareAlways, AddsUpToTheTotalUnlessQuotasAloneAreMore) {
  for_all([](const FairShareCase& drawn, Draw&) {
    const FairShares shares = shares_of_draw(drawn);
    const int64_t given = std::accumulate(shares.share.begin(), shares.share.end(), int64_t{0});
    int64_t deserved = 0;
    for (const Claimant& claimant : drawn.claimants) deserved += guaranteed(claimant, drawn.total);
    EXPECT_EQ(given + shares.left, std::max(drawn.total, deserved));
    EXPECT_GE(shares.left, 0);
  });
}

TEST(FairShareAlways, LeavesNothingWhileAClaimantWithAWeightRequestsMore) {
  for_all([](const FairShareCase& drawn, Draw&) {
    const FairShares shares = shares_of_draw(drawn);
    for (size_t i = 0; i < drawn.claimants.size(); ++i) {
      const Claimant& claimant = drawn.claimants[i];
      if (claimant.weight > 0 && shares.share[i] < requestable(claimant)) {
        EXPECT_EQ(shares.left, 0);
      }
    }
  });
}

TEST(FairShareAlways, GivesNothingOverQuotaWithoutWeight) {
  for_all([](const FairShareCase& drawn, Draw&) {
    const FairShares shares = shares_of_draw(drawn);
    for (size_t i = 0; i < drawn.claimants.size(); ++i) {
      const Claimant& claimant = drawn.claimants[i];
      if (claimant.weight > 0) continue;
      EXPECT_EQ(shares.share[i], guaranteed(claimant, drawn.total));
    }
  });
}

// At most one unit less: a request slightly above the share is rounded down.
TEST(FairShareAlways, AskingForMoreNeverCostsMoreThanTheRounding) {
  for_all([](FairShareCase drawn, Draw& draw) {
    if (drawn.claimants.empty()) return;
    const auto one = static_cast<size_t>(draw.upto(int64_t(drawn.claimants.size()) - 1));
    const int64_t before = shares_of_draw(drawn).share[one];
    drawn.claimants[one].request += draw.upto(5) * drawn.unit;
    EXPECT_GT(shares_of_draw(drawn).share[one], before - drawn.unit);
  });
}

TEST(FairShareAlways, BreaksTiesByAgeAndNotByTheOrderOfTheList) {
  for_all([](const FairShareCase& drawn, Draw& draw) {
    const FairShares shares = shares_of_draw(drawn);
    std::vector<size_t> order(drawn.claimants.size());
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(draw.upto(int64_t(i) - 1))]);
    }
    FairShareCase shuffled = drawn;
    for (size_t i = 0; i < order.size(); ++i) shuffled.claimants[i] = drawn.claimants[order[i]];

    const FairShares again = shares_of_draw(shuffled);

    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(again.share[i], shares.share[order[i]]);
    EXPECT_EQ(again.left, shares.left);
  });
}

// Two claimants with unlimited requests share by weight, up to the unit of rounding.
TEST(FairShareAlways, DividesByWeightBetweenClaimantsWithUnlimitedRequests) {
  for_all([](const FairShareCase& drawn, Draw& draw) {
    const int64_t weight = draw.upto(9) + 1;
    const int64_t other = draw.upto(9) + 1;
    const FairShares shares =
        fair_shares(drawn.total,
                    {{.request = kUnlimited, .weight = static_cast<double>(weight)},
                     {.request = kUnlimited, .weight = static_cast<double>(other)}},
                    drawn.unit);
    const int64_t ideal = drawn.total / (weight + other) * weight;
    EXPECT_NEAR(static_cast<double>(shares.share[0]), static_cast<double>(ideal),
                static_cast<double>(drawn.unit + weight));
  });
}

/// Water-filling among claimants of one weight and one priority, one unit after the other: each unit
/// goes to the claimant that has received the least so far, of equal ones to the oldest.
std::vector<int64_t> unit_by_unit(const FairShareCase& drawn) {
  std::vector<int64_t> share;
  int64_t left = drawn.total;
  for (const Claimant& claimant : drawn.claimants) {
    share.push_back(guaranteed(claimant, drawn.total));
    left -= share.back();
  }
  std::vector<int64_t> received(share.size());
  while (left > 0) {
    size_t next = share.size();
    for (size_t i = 0; i < share.size(); ++i) {
      if (share[i] >= requestable(drawn.claimants[i])) continue;
      if (next == share.size() || received[i] < received[next]) next = i;
    }
    if (next == share.size()) break;
    ++share[next];
    ++received[next];
    --left;
  }
  return share;
}

TEST(FairShareAlways, DividesAmongEqualWeightsAsUnitByUnit) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Draw draw(seed);
    FairShareCase drawn;
    drawn.unit = 1;
    drawn.total = draw.upto(60);
    const double weight = static_cast<double>(draw.upto(40) + 1) / 10;
    const int64_t count = 1 + draw.upto(8);
    for (int64_t i = 0; i < count; ++i) {
      drawn.claimants.push_back({.deserved = draw.upto(4),
                                 .limit = draw.one_in(3) ? draw.upto(12) : kUnlimited,
                                 .request = draw.upto(20),
                                 .weight = weight,
                                 .sequence = static_cast<uint64_t>(i)});
    }
    EXPECT_EQ(shares_of_draw(drawn).share, unit_by_unit(drawn)) << "seed " << seed;
  }
}

}  // namespace

}  // namespace muster::schedule
