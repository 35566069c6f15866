// Why a gang waits or was evicted, as facts with the amounts of the books.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/fact.h"
#include "schedule/cycle.h"
#include "schedule/plan.h"
#include "schedule/reservation.h"

namespace muster::schedule {

/// The gang has a promise and waits for leaving tasks.
WaitVerdict promise_verdict(const GangState& gang);
/// The gang would start after these evictions.
WaitVerdict after_evictions_verdict(const std::vector<Eviction>& evictions);
WaitVerdict project_verdict(const Pool& pool, const GangState& gang);
/// The gang does not even fit on the pool's nodes if nothing else runs there, nor on those of another
/// pool that it may use: the nodes have changed since it was submitted. Nothing: it may fit, runs
/// already, or the pool has no node at all for it, which shortage_verdict() reports.
std::optional<WaitVerdict> never_verdict(const Pool& pool, const GangState& gang);
/// The verdict of its class. REQUIRES: the constraint of the class is not kNone.
WaitVerdict verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang);

/// The current verdict, with the holders of the resources and the expected start. Constraint::kNone
/// if the gang does not wait.
WaitVerdict explain_gang(const Cycle& cycle, GangState& gang);

/// How facts about other gangs refer to this one.
job::JobRef ref_to(const Gang& gang);

/// For a project at its limit or over its quota: which project and bound, allocated and requested
/// amounts.
WaitVerdict capacity_verdict(const Gang& gang, const CapacityRefusal& refusal,
                             const Ledger& ledger);

/// For a gang that does not fit in the pool of this name: number of tasks and nodes, missing and free
/// amounts. `ever`: the gang fits if fewer tasks run; false if `shortage` is that of empty nodes.
WaitVerdict shortage_verdict(const Gang& gang, const std::string& pool, const Shortage& shortage,
                             bool ever);
/// Whether the verdict is that the pool has no node, or no open one, that the gang may use. Where the
/// gang may use another pool, too, the verdict about that pool is the better reason.
bool has_no_open_node(const WaitVerdict& verdict);

enum class Tense { kPast, kForecast };
/// For the victim's events. A reclaim contains the use, quota, fair share and priority of both
/// projects, or of their ancestors that are siblings. `tense`: kForecast if the eviction is only a
/// forecast.
job::Eviction eviction_fact(const Gang& victim, const Gang& by, EvictionCause cause,
                            const Ledger& ledger, Tense tense = Tense::kPast);

/// The holders of what a gang needs: two facts, or none, with the projects and the gangs that hold
/// most of it, at most five each. `within`: only the gangs of this project and its subprojects;
/// kNoProject: all gangs of the pool.
std::vector<job::HeldByOthers> holders_of(const Pool& pool, const PlacementRequest& request,
                                          ProjectIndex within);

}  // namespace muster::schedule
