// Why a gang waits, in words: from the verdict on its class, or worked out afresh.
#pragma once

#include "schedule/cycle.h"

namespace muster::schedule {

/// Room is promised to it, and others are still leaving.
Reason promise_reason(const GangState& gang);
/// It would start once these have left.
Reason after_evictions_reason(const std::vector<Eviction>& evictions);
Reason project_reason(const Pool& pool, const GangState& gang);
/// The verdict on its class; REQUIRES: one that is not kNone.
Reason verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang);

/// As things are now, with who holds what it needs and when it may start. Of a gang that does not
/// wait: Constraint::kNone.
Reason explain_gang(const Cycle& cycle, GangState& gang);

}  // namespace muster::schedule
