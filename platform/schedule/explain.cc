#include "schedule/explain.h"

#include <algorithm>
#include <chrono>

#include "schedule/holders.h"
#include "schedule/reason.h"
#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

namespace {

std::string tasks_text(int count) {
  return std::to_string(count) + (count == 1 ? " task" : " tasks");
}

}  // namespace

Reason promise_reason(const GangState& gang) {
  Reason reason{.constraint = Constraint::kReleasing};
  const int coming = static_cast<int>(
      std::count_if(gang.tasks.begin(), gang.tasks.end(),
                    [](const TaskState& task) { return task.promised.has_value(); }));
  reason.text = "the places of " + tasks_text(coming) + " are promised to it";
  reason.text += gang.leaving_for_it > 0
                     ? ", and " + tasks_text(gang.leaving_for_it) + " of others " +
                           (gang.leaving_for_it == 1 ? "is" : "are") + " still leaving"
                     : ", and still being left";
  return reason;
}

Reason project_reason(const Pool& pool, const GangState& gang) {
  Reason reason{.constraint = Constraint::kProject};
  const bool is_known = pool.ledger.find(gang.gang.project) != kNoProject;
  reason.text = is_known ? "project " + gang.gang.project +
                               " has projects below it; jobs belong to one that has none"
                         : "there is no project " + gang.gang.project;
  return reason;
}

namespace {

Reason reserved_reason(const std::string& held_by) {
  return {.constraint = Constraint::kReserved,
          .text = "there is room, but it is kept for '" + held_by +
                  "', which comes before it and could not start otherwise"};
}

}  // namespace

Reason verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang) {
  switch (waiting.constraint) {
    case Constraint::kLimit:
    case Constraint::kQuota:
      return capacity_reason(gang.gang, *waiting.refusal, pool.ledger);
    case Constraint::kReserved:
      return reserved_reason(waiting.held_by);
    case Constraint::kRoom:
    case Constraint::kTopology:
      if (waiting.ask->shortage) return shortage_reason(gang.gang, *waiting.ask->shortage, true);
      break;
    default:
      break;
  }
  return {.constraint = waiting.constraint, .text = "it has not been its turn yet"};
}

Reason after_evictions_reason(const std::vector<Eviction>& evictions) {
  const auto gangs = evictions.size();
  return {.constraint = Constraint::kReleasing,
          .text = "starts as soon as " + std::to_string(gangs) +
                  (gangs == 1 ? " other has made room for it" : " others have made room for it")};
}

namespace {

/// As the pool stands at this moment.
Reason fresh_verdict(const Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  settle_books(pool);
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  const auto refusal = pool.ledger.refuses(waiting.leaf, asking.charge, gang.gang.preemptible);
  Reason reason;
  if (refusal) {
    reason = capacity_reason(gang.gang, *refusal, pool.ledger);
  } else {
    const Reservations::Placed placed = Reservations(cycle, pool).place(asking);
    if (placed.bookings) {
      for (const Booking& booking : *placed.bookings) pool.nodes.unbook(booking);
      reason = waiting.constraint == Constraint::kReserved
                   ? reserved_reason(waiting.held_by)
                   : Reason{.text = "there is room for it; it has not been its turn yet"};
    } else if (placed.only_reserved) {
      reason = reserved_reason(placed.held_by);
    } else {
      reason = shortage_reason(gang.gang, *placed.shortage, true);
    }
  }
  const std::vector<std::string> holders =
      holders_of(pool, asking, refusal ? refusal->project : kNoProject);
  reason.details.insert(reason.details.end(), holders.begin(), holders.end());
  if (const auto shadow = shadow_start(pool, asking, cycle.now)) reason.may_start = shadow->start;
  return reason;
}

Reason delay_reason(const GangState& gang, Time now) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(*gang.not_before - now);
  Reason reason{
      .text = "is tried again in " + std::to_string(std::max<int64_t>(left.count(), 0)) + " s",
      .may_start = gang.not_before};
  return reason;
}

}  // namespace

Reason explain_gang(const Cycle& cycle, GangState& gang) {
  if (gang.not_before) return delay_reason(gang, cycle.now);
  if (has_promise(gang)) return promise_reason(gang);
  std::optional<Reason> first;
  for (Entry& entry : gang.entries) {
    if (gang.home != nullptr && gang.home != entry.pool) continue;
    if (entry.waits_in == nullptr && !entry.pool->homeless.contains(&gang)) continue;
    Reason reason = entry.waits_in == nullptr
                        ? project_reason(*entry.pool, gang)
                        : fresh_verdict(cycle, *entry.pool, gang, *entry.waits_in);
    if (first) {
      first->details.push_back("in pool " + entry.pool->name + ": " + reason.text);
      if (reason.may_start && (!first->may_start || *reason.may_start < *first->may_start)) {
        first->may_start = reason.may_start;
      }
    } else {
      first = std::move(reason);
    }
  }
  return first.value_or(Reason{});
}

}  // namespace muster::schedule
