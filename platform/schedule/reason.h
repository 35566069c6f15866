// Why a gang waits, why another was evicted: as facts with the numbers of the books.
//
// Pure.
#pragma once

#include "job/fact.h"
#include "schedule/plan.h"

namespace muster::schedule {

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

}  // namespace muster::schedule
