#include "schedule/reserved_limits.h"

#include <algorithm>
#include <optional>

#include "schedule/gang_books.h"

namespace muster::schedule {

namespace {

/// What the gang with the reservation counts in the ledger when it starts.
Amounts charge_of_reserved(const Pool& pool, const Reservation& reservation) {
  const PoolEntry& entry = entry_in(*reservation.gang, pool);
  return entry.waits_in == nullptr ? Amounts{} : charge_of(entry, entry.waits_in->key.ask.counts);
}

/// Whether no limit or quota keeps the gang with the reservation from starting.
bool may_start_reserved(const Pool& pool, const Reservation& kept) {
  return !pool.ledger.refuses(kept.leaf, charge_of_reserved(pool, kept),
                              kept.gang->gang.preemptible);
}

/// The project without a parent above this one, or itself.
ProjectIndex top_above(const Ledger& ledger, ProjectIndex project) {
  while (project != kNoProject && ledger.parent(project) != kNoProject) {
    project = ledger.parent(project);
  }
  return project;
}

}  // namespace

void count_in_ledger(Trial& trial, const Pool& pool, const Reservation& reservation) {
  trial.allocate(reservation.leaf, charge_of_reserved(pool, reservation),
                 reservation.gang->gang.preemptible);
}

bool ends_before(Time now, const PlacementRequest& request, const Reservation& timed) {
  const std::optional<Milliseconds>& limit = request.gang.gang.time_limit;
  return limit && request.gang.expected_end.value_or(now + *limit) <= *timed.start;
}

std::vector<const Reservation*> respected_limits(const Pool& pool,
                                                 const PlacementRequest& request) {
  std::vector<const Reservation*> respected;
  std::optional<bool> is_over;
  for (const Reservation& kept : pool.kept) {
    if (kept.gang == &request.gang) break;  // the others are younger
    if (!is_over && kept.leaf != request.entry.leaf && !kept.within_quota) {
      is_over = pool.ledger.order_key(request.entry.leaf, request.charge).over_deserved_with_job;
    }
    const bool is_respected = kept.leaf == request.entry.leaf || kept.within_quota || *is_over;
    if (is_respected) respected.push_back(&kept);
  }
  return respected;
}

const GangState* first_held(Pool& pool, const std::vector<const Reservation*>& reservations,
                            const PlacementRequest& request) {
  const auto is_refused = [&](const Amounts& amounts) {
    return pool.ledger.refuses(request.entry.leaf, amounts, request.gang.gang.preemptible)
        .has_value();
  };
  std::vector<const Reservation*> related;
  const ProjectIndex top = top_above(pool.ledger, request.entry.leaf);
  // Most pools have no limit that all of them together could reach.
  Amounts most = request.charge;
  for (const Reservation* const one : reservations) {
    if (top_above(pool.ledger, one->leaf) != top) continue;
    related.push_back(one);
    most += charge_of_reserved(pool, *one);
  }
  if (related.empty() || !is_refused(most)) return nullptr;
  // A gang need not respect every older reservation: each reservation is first counted alone.
  for (const Reservation* const one : related) {
    if (!may_start_reserved(pool, *one)) continue;
    Trial alone(pool);
    count_in_ledger(alone, pool, *one);
    if (is_refused(request.charge)) return one->gang;
  }
  Trial trial(pool);
  for (const Reservation* const one : related) {
    // It has to wait for the gangs that are counted already.
    if (!may_start_reserved(pool, *one)) continue;
    count_in_ledger(trial, pool, *one);
    if (is_refused(request.charge)) return one->gang;
  }
  return nullptr;
}

const GangState* held_at_limit(Pool& pool, const PlacementRequest& request) {
  if (pool.kept.empty()) return nullptr;
  return first_held(pool, respected_limits(pool, request), request);
}

const GangState* held_at_later_limit(Pool& pool, const PlacementRequest& request, Time now) {
  std::vector<const Reservation*> later;
  const ProjectIndex top = top_above(pool.ledger, request.entry.leaf);
  std::optional<bool> is_over;
  for (const Reservation& timed : pool.timed) {
    if (timed.gang == &request.gang || ends_before(now, request, timed)) continue;
    if (top_above(pool.ledger, timed.leaf) != top) continue;
    if (timed.leaf != request.entry.leaf && !timed.within_quota) {
      if (!is_over) {
        is_over = pool.ledger.order_key(request.entry.leaf, request.charge).over_deserved_with_job;
      }
      if (!*is_over) continue;
    }
    later.push_back(&timed);
  }
  if (later.empty()) return nullptr;
  const auto is_refused = [&] {
    return pool.ledger.refuses(request.entry.leaf, request.charge, request.gang.gang.preemptible)
        .has_value();
  };
  // Most pools have no limit that all of them together could reach.
  Amounts most = request.charge;
  for (const Reservation* const one : later) most += charge_of_reserved(pool, *one);
  if (!pool.ledger.refuses(request.entry.leaf, most, request.gang.gang.preemptible)) return nullptr;
  {
    Trial all(pool);
    for (const Reservation* const one : later) count_in_ledger(all, pool, *one);
    if (!is_refused()) return nullptr;
  }
  Trial trial(pool);
  std::stable_sort(
      later.begin(), later.end(),
      [](const Reservation* one, const Reservation* other) { return *one->start < *other->start; });
  auto next = pool.expected_ends.begin();
  for (const Reservation* const reservation : later) {
    for (; next != pool.expected_ends.end(); ++next) {
      const auto& [end, number, gang] = *next;
      if (end > *reservation->start) break;
      const ProjectIndex leaf = entry_in(*gang, pool).leaf;
      if (leaf != kNoProject) trial.release(leaf, gang->counted, gang->gang.preemptible);
    }
    count_in_ledger(trial, pool, *reservation);
    if (is_refused()) return reservation->gang;
  }
  return nullptr;
}

}  // namespace muster::schedule
