// The sentences: why a gang waits, why another was evicted. With numbers, in the words of the
// documents where they have any.
//
// Pure: values in, text out.
#pragma once

#include <string>

#include "schedule/amount_text.h"
#include "schedule/plan.h"

namespace muster::schedule {

/// At a limit or over a quota: which project, which bound, what is allocated, what was asked for.
Reason capacity_reason(const Gang& gang, const CapacityRefusal& refusal, const Ledger& ledger);

/// No room: of how many tasks, on how many nodes, what they lack and how much is free. `ever`: it
/// would find room if less ran; false where `shortage` is that of an empty cluster.
Reason shortage_reason(const Gang& gang, const Shortage& shortage, bool ever);

/// For the victim's events: "was preempted by 'b' of ...", with the use, quota, fair share and
/// priority of both projects, as the books stand, where it was reclaimed: of those at which the
/// paths of the two from the top part.
/// `tense`: of a forecast, nothing of it has happened: "would be preempted by 'b' of ...".
enum class Tense { kPast, kForecast };
std::string eviction_text(const Gang& victim, const Gang& by, EvictionCause cause,
                          const Ledger& ledger, Tense tense = Tense::kPast);
std::string stale_text(const Gang& gang, int running, Milliseconds grace);

}  // namespace muster::schedule
