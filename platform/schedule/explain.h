// Why a gang waits: from the verdict on its class, or worked out afresh.
#pragma once

#include "schedule/cycle.h"

namespace muster::schedule {

/// Room is promised to it, and others are still leaving.
Verdict promise_verdict(const GangState& gang);
/// It would start once these have left.
Verdict after_evictions_verdict(const std::vector<Eviction>& evictions);
Verdict project_verdict(const Pool& pool, const GangState& gang);
/// The verdict on its class; REQUIRES: one that is not kNone.
Verdict verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang);

/// As things are now, with who holds what it needs and when it may start. Of a gang that does not
/// wait: Constraint::kNone.
Verdict explain_gang(const Cycle& cycle, GangState& gang);

}  // namespace muster::schedule
