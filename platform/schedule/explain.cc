#include "schedule/explain.h"

#include <algorithm>
#include <chrono>

#include "schedule/holders.h"
#include "schedule/reason.h"
#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

using job::Notice;

Verdict promise_verdict(const GangState& gang) {
  const int coming = static_cast<int>(
      std::count_if(gang.tasks.begin(), gang.tasks.end(),
                    [](const TaskState& task) { return task.promised.has_value(); }));
  return {.constraint = Constraint::kReleasing,
          .reason = job::Promised{.tasks = coming, .leaving = {gang.leaving_for_it}}};
}

Verdict project_verdict(const Pool& pool, const GangState& gang) {
  const bool is_known = pool.ledger.find(gang.gang.project) != kNoProject;
  return {.constraint = Constraint::kProject,
          .reason = job::NoProject{.project = gang.gang.project, .has_children = is_known}};
}

namespace {

Verdict reserved_verdict(const job::JobRef& held_by) {
  return {.constraint = Constraint::kReserved, .reason = job::Reserved{held_by}};
}

}  // namespace

Verdict verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang) {
  switch (waiting.constraint) {
    case Constraint::kLimit:
    case Constraint::kQuota:
      return capacity_verdict(gang.gang, *waiting.refusal, pool.ledger);
    case Constraint::kReserved:
      return reserved_verdict(waiting.held_by);
    case Constraint::kRoom:
    case Constraint::kTopology:
      if (waiting.ask->shortage) return shortage_verdict(gang.gang, *waiting.ask->shortage, true);
      break;
    default:
      break;
  }
  return {.constraint = waiting.constraint, .reason = Notice{Notice::What::kNotItsTurn}};
}

Verdict after_evictions_verdict(const std::vector<Eviction>& evictions) {
  return {.constraint = Constraint::kReleasing,
          .reason = job::AfterEvictions{{static_cast<int>(evictions.size())}}};
}

namespace {

/// As the pool stands at this moment.
Verdict fresh_verdict(const Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  settle_books(pool);
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  const auto refusal = pool.ledger.refuses(waiting.leaf, asking.charge, gang.gang.preemptible);
  Verdict verdict;
  if (refusal) {
    verdict = capacity_verdict(gang.gang, *refusal, pool.ledger);
  } else {
    const Reservations::Placed placed = Reservations(cycle, pool).place(asking);
    if (placed.bookings) {
      for (const Booking& booking : *placed.bookings) pool.nodes.unbook(booking);
      verdict = waiting.constraint == Constraint::kReserved
                    ? reserved_verdict(waiting.held_by)
                    : Verdict{.reason = Notice{Notice::What::kRoomButNotItsTurn}};
    } else if (placed.only_reserved) {
      verdict = reserved_verdict(placed.held_by);
    } else {
      verdict = shortage_verdict(gang.gang, *placed.shortage, true);
    }
  }
  for (job::HeldByOthers& held :
       holders_of(pool, asking, refusal ? refusal->project : kNoProject)) {
    verdict.reason.details.emplace_back(std::move(held));
  }
  if (const auto shadow = shadow_start(pool, asking, cycle.now)) verdict.may_start = shadow->start;
  return verdict;
}

Verdict delay_verdict(const GangState& gang, Time now) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(*gang.not_before - now);
  return {.reason = job::TriedAgain{std::max<int64_t>(left.count(), 0)},
          .may_start = gang.not_before};
}

}  // namespace

Verdict explain_gang(const Cycle& cycle, GangState& gang) {
  if (gang.not_before) return delay_verdict(gang, cycle.now);
  if (has_promise(gang)) return promise_verdict(gang);
  std::optional<Verdict> first;
  for (Entry& entry : gang.entries) {
    if (gang.home != nullptr && gang.home != entry.pool) continue;
    if (entry.waits_in == nullptr && !entry.pool->homeless.contains(&gang)) continue;
    Verdict verdict = entry.waits_in == nullptr
                          ? project_verdict(*entry.pool, gang)
                          : fresh_verdict(cycle, *entry.pool, gang, *entry.waits_in);
    if (first) {
      first->reason.details.emplace_back(std::move(verdict.reason.what), entry.pool->name);
      if (verdict.may_start && (!first->may_start || *verdict.may_start < *first->may_start)) {
        first->may_start = verdict.may_start;
      }
    } else {
      first = std::move(verdict);
    }
  }
  return first.value_or(Verdict{});
}

}  // namespace muster::schedule
