// How what there is of one resource is shared out among sibling projects: first what each deserves,
// then the rest by priority and weight (water-filling), in whole units with the largest remainder
// first.
//
// The rules are KAI Scheduler's (pkg/scheduler/plugins/proportion/resource_division), whose unit
// vectors are this function's table test. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/amounts.h"

namespace muster::schedule {

/// One project's claim on one resource. Amounts in any one unit.
struct Claimant {
  int64_t deserved = 0;  ///< kUnlimited: all there is
  int64_t limit = kUnlimited;
  int64_t request = 0;    ///< what runs and what waits
  double weight = 0;      ///< of what is left over; 0: none of it
  int priority = 100;     ///< larger first, of what is left over
  double past_use = 0;    ///< decayed use, as a part of all there is (0 to 1)
  uint64_t sequence = 0;  ///< order of creation
};

struct FairShares {
  std::vector<int64_t> share;  ///< by claimant
  int64_t left = 0;            ///< what nobody can or may take
};

/// `unit` is what is never divided: 1000 for thousandths of whole GPUs. `decay` is how much past
/// use weighs (0: not at all).
FairShares fair_shares(int64_t total, const std::vector<Claimant>& claimants, int64_t unit,
                       double decay = 0);

}  // namespace muster::schedule
