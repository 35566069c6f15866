#include "schedule/make_room.h"

#include <algorithm>
#include <map>

namespace muster::schedule {

MakeRoom::MakeRoom(Trial& trial, const Options& options, Pool& pool, const Asking& asking,
                   bool must_be_fair)
    : trial_(trial),
      options_(options),
      pool_(pool),
      asking_(asking),
      must_be_fair_(must_be_fair),
      refused_by_capacity_(
          pool.ledger.refuses(asking.entry.leaf, asking.charge, asking.gang.gang.preemptible)
              .has_value()) {
  for (size_t group = 0; group < asking.counts.size(); ++group) {
    if (asking.counts[group] > 0) claims_.push_back(asking.gang.gang.groups[group].claim);
  }
  lift_kept();
}

/// What is kept for the gang itself is its own; what is kept for gangs of other projects that are
/// over their quota stands back for one within its own.
void MakeRoom::lift_kept() {
  const bool within_quota =
      !pool_.ledger.order_key(asking_.entry.leaf, asking_.charge).over_deserved_with_job;
  for (const Reservation& kept : pool_.kept) {
    const bool own = kept.gang == &asking_.gang;
    const bool same_project = entry_in(*kept.gang, pool_).leaf == asking_.entry.leaf;
    if (!own && (same_project || kept.within_quota || !within_quota)) continue;
    for (const Booking& booking : kept.bookings) {
      trial_.unreserve(booking);
      if (!own) lifted_.push_back(booking);
    }
  }
}

void MakeRoom::put_back_kept() {
  for (const Booking& booking : lifted_) trial_.reserve(booking);
}

bool MakeRoom::fits_already() {
  if (refused_by_capacity_) return false;
  const size_t mark = trial_.mark();
  const bool fits = place();
  trial_.rollback(mark);
  return fits;
}

bool MakeRoom::place() {
  auto placed = trial_.place_later(asking_.gang.gang, asking_.counts, asking_.packing,
                                   held_bookings(asking_.gang));
  if (!placed) return false;
  bookings_ = *std::move(placed);
  return true;
}

std::vector<Booking> MakeRoom::held_by(const Unit& unit) const {
  std::vector<Booking> held;
  for (const int task : unit.tasks) {
    held.push_back(unit.gang->tasks[static_cast<size_t>(task)].held);
  }
  return held;
}

void MakeRoom::evict(Unit unit, bool may_end) {
  for (const Booking& booking : held_by(unit)) trial_.begin_release(booking);
  trial_.release(unit.leaf, unit.amounts, unit.gang->gang.preemptible);
  victims_.push_back({.unit = std::move(unit), .may_end = may_end});
}

bool MakeRoom::is_worth_a_try() const {
  if (refused_by_capacity_) return true;
  const std::vector<Booking> held = held_by(victims_.back().unit);
  return std::any_of(held.begin(), held.end(), [&](const Booking& booking) {
    return booking.node >= 0 && might_hold_one(pool_.nodes, booking.node, claims_, Room::kLater);
  });
}

std::optional<Decision> MakeRoom::conclude() {
  const Ledger& ledger = pool_.ledger;
  if (ledger.refuses(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible)) {
    return std::nullopt;
  }
  const size_t mark = trial_.mark();
  const std::vector<Victim> before = victims_;
  if (!place()) return std::nullopt;
  trial_.allocate(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible);
  give_back_unneeded();
  Decision decision;
  if (!move_victims(decision.evicted) || !is_fair(decision.evicted)) {
    trial_.rollback(mark);
    victims_ = before;
    return std::nullopt;
  }
  put_back_kept();
  decision.bookings = bookings_;
  return decision;
}

/// Who took more than its share is not better off than those it took from: or they would take it
/// back.
bool MakeRoom::is_fair(const std::vector<Evicted>& evicted) const {
  if (!must_be_fair_) return true;
  return std::all_of(evicted.begin(), evicted.end(), [&](const Evicted& one) {
    return one.moved_to || pool_.ledger.is_fair_between(asking_.entry.leaf, asking_.charge,
                                                        entry_in(*one.gang, pool_).leaf);
  });
}

bool MakeRoom::is_on_the_nodes(const Unit& unit) const {
  const std::vector<Booking> held = held_by(unit);
  return std::any_of(held.begin(), held.end(), [&](const Booking& booking) {
    return std::any_of(bookings_.begin(), bookings_.end(),
                       [&](const Booking& own) { return own.node == booking.node; });
  });
}

// Backwards: those evicted last are the most deserving. A gang's tasks beyond its minimum can only
// go on if its core does.
void MakeRoom::give_back_unneeded() {
  for (size_t i = victims_.size(); i-- > 0;) {
    Victim& victim = victims_[i];
    const bool core_is_gone =
        !victim.unit.core && std::any_of(victims_.begin(), victims_.end(), [&](const Victim& one) {
          return one.unit.gang == victim.unit.gang && one.unit.core && one.evicted;
        });
    if (!core_is_gone) victim.evicted = !give_back(victim);
  }
}

bool MakeRoom::give_back(Victim& victim) {
  const Unit& unit = victim.unit;
  if (pool_.ledger.refuses(unit.leaf, unit.amounts, unit.gang->gang.preemptible)) return false;
  const size_t mark = trial_.mark();
  const std::vector<Booking> placed = bookings_;
  const bool in_the_way = is_on_the_nodes(unit);
  if (in_the_way) {
    for (const Booking& booking : bookings_) trial_.unreserve(booking);
  }
  for (const Booking& booking : held_by(unit)) trial_.undo_begin_release(booking);
  if (in_the_way && !place()) {
    trial_.rollback(mark);
    bookings_ = placed;
    return false;
  }
  trial_.allocate(unit.leaf, unit.amounts, unit.gang->gang.preemptible);
  return true;
}

/// All that was evicted of one gang finds another place together, or ends together. False where
/// some of it has neither a place nor leave to end.
bool MakeRoom::move_victims(std::vector<Evicted>& evicted) {
  std::map<uint64_t, size_t> entries;
  std::vector<Unit> whole;
  std::vector<bool> may_end;
  for (auto victim = victims_.rbegin(); victim != victims_.rend(); ++victim) {
    if (!victim->evicted) continue;
    const Unit& unit = victim->unit;
    const auto [entry, is_new] = entries.try_emplace(unit.gang->number, whole.size());
    if (is_new) {
      whole.push_back(unit);
      may_end.push_back(victim->may_end);
      continue;
    }
    Unit& together = whole[entry->second];
    together.tasks.insert(together.tasks.end(), unit.tasks.begin(), unit.tasks.end());
    together.amounts += unit.amounts;
    may_end[entry->second] = may_end[entry->second] && victim->may_end;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    Unit& unit = whole[i];
    std::sort(unit.tasks.begin(), unit.tasks.end());
    std::optional<std::vector<Booking>> to = move(*unit.gang, unit.tasks, unit);
    if (!to && !may_end[i]) return false;
    evicted.push_back({.gang = unit.gang, .tasks = unit.tasks, .moved_to = std::move(to)});
  }
  return true;
}

std::optional<std::vector<Booking>> MakeRoom::move(const GangState& gang,
                                                   const std::vector<int>& tasks,
                                                   const Unit& unit) {
  // One that has lost tasks would start as half a gang.
  if (is_below_minimum(gang)) return std::nullopt;
  if (pool_.ledger.refuses(unit.leaf, unit.amounts, gang.gang.preemptible)) return std::nullopt;
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  std::vector<int> counts(gang.gang.groups.size());
  for (const int task : tasks) {
    ++counts[static_cast<size_t>(groups[static_cast<size_t>(task)])];
  }
  std::vector<Booking> beside;
  for (size_t task = 0; task < gang.tasks.size(); ++task) {
    const TaskState& state = gang.tasks[task];
    const bool stays = state.phase == TaskPhase::kRunning && state.held.node >= 0 &&
                       !std::binary_search(tasks.begin(), tasks.end(), static_cast<int>(task));
    if (stays) beside.push_back(state.held);
  }
  auto placed =
      trial_.place_later(gang.gang, counts, gang.gang.packing.value_or(options_.packing), beside);
  if (!placed) return std::nullopt;
  trial_.allocate(unit.leaf, unit.amounts, gang.gang.preemptible);
  return *std::move(placed);
}

}  // namespace muster::schedule
