#include <bit>
#include <cmath>
#include <span>

#include "schedule/ledger.h"
#include "schedule/model.h"

namespace muster::schedule {

namespace {

// Weights become integers before anything is divided, so that shares and remainders are exact and
// do not depend on the order of the claimants. A weight this many binary digits below the largest
// still counts.
constexpr int kWeightDigits = 44;

/// A claimant that may get a part of the rest, and has not reached its request or its limit.
struct Taker {
  size_t index = 0;  ///< among the claimants
  const Claimant* claimant = nullptr;
  int64_t missing = 0;
  int64_t given = 0;
  int64_t weight = 0;  ///< in the latest round
  Wide remainder = 0;  ///< lost by rounding down in that round; one denominator in a group
};

void give(Taker& taker, int64_t amount, int64_t& left) {
  taker.missing -= amount;
  taker.given += amount;
  left -= amount;
}

/// Whole numbers in the proportions of `weights`. REQUIRES: no weight is negative.
std::vector<int64_t> whole_weights(const std::vector<double>& weights) {
  double largest = 0;
  for (const double weight : weights) largest = std::max(largest, weight);
  int exponent = 0;
  std::frexp(largest, &exponent);

  std::vector<int64_t> whole;
  uint64_t digits = 0;
  for (const double weight : weights) {
    const int64_t scaled = std::llround(std::ldexp(weight, kWeightDigits - exponent));
    whole.push_back(weight > 0 ? std::max<int64_t>(scaled, 1) : 0);
    digits |= static_cast<uint64_t>(whole.back());
  }
  // The usual weights are small integers; as such they divide in one machine word.
  if (digits != 0) {
    for (int64_t& weight : whole) weight >>= std::countr_zero(digits);
  }
  return whole;
}

bool have_one_weight(std::span<const Taker> group) {
  return std::all_of(group.begin(), group.end(), [&](const Taker& taker) {
    return taker.claimant->weight == group.front().claimant->weight;
  });
}

/// Sets the weights of a round; their sum.
Wide weigh(std::span<Taker> group, double decay) {
  // Only proportions matter: among many projects, most have one weight.
  if (!(decay > 0) && have_one_weight(group)) {
    for (Taker& taker : group) taker.weight = 1;
    return static_cast<Wide>(group.size());
  }
  std::vector<double> weights;
  for (const Taker& taker : group) {
    weights.push_back(std::min(taker.claimant->weight, std::numeric_limits<double>::max()));
  }
  std::vector<int64_t> whole = whole_weights(weights);
  Wide sum = 0;
  for (const int64_t weight : whole) sum += weight;

  if (decay > 0 && sum > 0) {
    for (size_t i = 0; i < group.size(); ++i) {
      const double part = static_cast<double>(whole[i]) / static_cast<double>(sum);
      weights[i] = std::max(0.0, part + decay * (part - group[i].claimant->past_use));
    }
    whole = whole_weights(weights);
    sum = 0;
    for (const int64_t weight : whole) sum += weight;
  }
  for (size_t i = 0; i < group.size(); ++i) group[i].weight = whole[i];
  return sum;
}

/// Rounds of water-filling. A claimant that needs less than its share leaves the rest to the next
/// round. A claimant that needs more gets its share in whole units, and its remainder is recorded.
///
/// The number of rounds is small: apart from less than a unit for each claimant, a round hands on
/// at most the part of the satisfied claimants, so either the amount or the sum of the weights
/// halves.
void fill(std::span<Taker> group, int64_t unit, double decay, int64_t& left) {
  size_t open = group.size();
  for (bool again = true; again && left > 0 && open > 0;) {
    again = false;
    const std::span<Taker> round = group.first(open);
    const Wide sum = weigh(round, decay);
    if (sum == 0) return;
    const int64_t amount = left;
    for (Taker& taker : round) {
      const Wide share = Wide{amount} * taker.weight;  // times 1 / sum
      const Wide missing = Wide{taker.missing} * sum;
      if (missing <= share) {
        again = again || missing < share;
        give(taker, taker.missing, left);
      } else {
        const auto whole = static_cast<int64_t>(share / sum) / unit * unit;
        taker.remainder = share - Wide{whole} * sum;
        give(taker, whole, left);
      }
    }
    const auto satisfied = std::stable_partition(
        round.begin(), round.end(), [](const Taker& taker) { return taker.missing > 0; });
    open = static_cast<size_t>(satisfied - round.begin());
  }
}

/// Hands out the rest that rounding left: one unit each, by the largest remainder, then by age. One
/// pass suffices: the remainders of the last round add up to the rest, and each claimant still
/// lacks more than its remainder.
void hand_out_units(std::span<Taker> group, int64_t unit, int64_t& left) {
  std::vector<Taker*> order;
  for (Taker& taker : group) {
    if (taker.missing > 0 && taker.weight > 0) order.push_back(&taker);
  }
  std::sort(order.begin(), order.end(), [](const Taker* one, const Taker* other) {
    if (one->remainder != other->remainder) return one->remainder > other->remainder;
    if (one->claimant->sequence != other->claimant->sequence) {
      return one->claimant->sequence < other->claimant->sequence;
    }
    return one->index < other->index;
  });
  for (Taker* taker : order) give(*taker, std::min({unit, taker->missing, left}), left);
}

/// Takers of one priority each, highest first.
std::vector<std::span<Taker>> by_priority(std::vector<Taker>& takers) {
  std::stable_sort(takers.begin(), takers.end(), [](const Taker& one, const Taker& other) {
    return one.claimant->priority > other.claimant->priority;
  });
  std::vector<std::span<Taker>> groups;
  for (auto begin = takers.begin(); begin != takers.end();) {
    const auto end = std::find_if(begin, takers.end(), [&](const Taker& taker) {
      return taker.claimant->priority != begin->claimant->priority;
    });
    groups.emplace_back(begin, end);
    begin = end;
  }
  return groups;
}

}  // namespace

FairShares fair_shares(int64_t total, const std::vector<Claimant>& claimants, int64_t unit,
                       double decay) {
  total = std::max<int64_t>(total, 0);
  FairShares result;
  std::vector<Taker> takers;
  Wide rest = total;
  for (size_t i = 0; i < claimants.size(); ++i) {
    const Claimant& claimant = claimants[i];
    const int64_t usable = std::max<int64_t>(0, std::min(claimant.request, claimant.limit));
    const int64_t deserved = claimant.deserved >= kUnlimited ? total : claimant.deserved;
    const int64_t share = std::clamp<int64_t>(deserved, 0, usable);
    result.share.push_back(share);
    rest -= share;
    if (share < usable && claimant.weight > 0) {
      takers.push_back({.index = i, .claimant = &claimant, .missing = usable - share});
    }
  }

  // If the quotas add up to more than the total, each claimant gets its quota, and no rest is left.
  int64_t left = rest > 0 ? static_cast<int64_t>(rest) : 0;
  result.rest = rest;
  result.has_takers = !takers.empty();
  const std::vector<std::span<Taker>> groups = by_priority(takers);
  for (const std::span<Taker> group : groups) fill(group, unit, decay, left);
  for (const std::span<Taker> group : groups) hand_out_units(group, unit, left);
  for (const Taker& taker : takers) result.share[taker.index] += taker.given;
  result.left = left;
  return result;
}

}  // namespace muster::schedule
