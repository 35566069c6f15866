// Why a gang waits: from the verdict on its class, or worked out afresh.
#pragma once

#include <vector>

#include "job/fact.h"
#include "schedule/cycle.h"
#include "schedule/plan.h"
#include "schedule/reservation.h"

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

// Why a gang waits, why another was evicted: as facts with the numbers of the books.
//
// Pure.

/// The gang as the facts about others name it.
job::JobRef ref_to(const Gang& gang);

/// At a limit or over a quota: which project, which bound, what is allocated, what was asked for.
Verdict capacity_verdict(const Gang& gang, const CapacityRefusal& refusal, const Ledger& ledger);

/// No room: of how many tasks, on how many nodes, what they lack and how much is free. `ever`: it
/// would find room if less ran; false where `shortage` is that of an empty cluster.
Verdict shortage_verdict(const Gang& gang, const Shortage& shortage, bool ever);

/// For the victim's events, as the books stand: where it was reclaimed, with the use, quota, fair
/// share and priority of both projects, of those at which the paths of the two from the top part.
/// `tense`: of a forecast, nothing of it has happened.
enum class Tense { kPast, kForecast };
job::Eviction eviction_fact(const Gang& victim, const Gang& by, EvictionCause cause,
                            const Ledger& ledger, Tense tense = Tense::kPast);

// Who holds what a waiting gang needs.

/// Two facts, or none: the projects, and the gangs, that hold most of the resource that `asking`
/// wants, at most five of each. `within`: only what counts for this project, its own gangs and
/// those below it; kNoProject: all of the pool.
std::vector<job::HeldByOthers> holders_of(const Pool& pool, const Asking& asking,
                                          ProjectIndex within);

}  // namespace muster::schedule
