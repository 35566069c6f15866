#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "schedule/eviction.h"
#include "schedule/reserved_limits.h"

namespace muster::schedule {

namespace {

/// The largest task of the unit's gang.
auto size_of_largest(const GangState& gang) {
  std::tuple<int64_t, int64_t, int64_t> largest{0, 0, 0};
  for (const TaskState& task : gang.tasks) {
    const Booking& held = task.held;
    const int64_t gpu_milli = int64_t{held.share_milli} * __builtin_popcountll(held.devices);
    largest = std::max(largest, {gpu_milli, held.cpu_milli, held.memory_bytes});
  }
  return largest;
}

}  // namespace

VictimSelection::VictimSelection(Trial& trial, const Options& options, Pool& pool,
                                 const PlacementRequest& request, bool must_be_fair)
    : trial_(trial),
      options_(options),
      pool_(pool),
      asking_(request),
      must_be_fair_(must_be_fair),
      refused_by_capacity_(
          pool.ledger.refuses(request.entry.leaf, request.charge, request.gang.gang.preemptible)
              .has_value()),
      limits_(respected_limits(pool, request)) {
  for (size_t group = 0; group < request.counts.size(); ++group) {
    if (request.counts[group] > 0) claims_.push_back(request.gang.gang.groups[group].claim);
  }
  lift_kept();
}

/// The reservation of the gang itself does not block it. A reservation of a project over its quota
/// does not block a gang within its quota.
void VictimSelection::lift_kept() {
  const bool within_quota =
      !pool_.ledger.order_key(asking_.entry.leaf, asking_.charge).over_deserved_with_job;
  for (const Reservation& kept : pool_.kept) {
    const bool own = kept.gang == &asking_.gang;
    const bool same_project = entry_in(*kept.gang, pool_).leaf == asking_.entry.leaf;
    if (!own && (same_project || kept.within_quota || !within_quota)) continue;
    for (const Booking& booking : kept.bookings) {
      trial_.unkeep(booking);
      if (!own) lifted_.push_back(booking);
    }
  }
}

void VictimSelection::put_back_kept() {
  for (const Booking& booking : lifted_) trial_.keep(booking);
}

bool VictimSelection::fits_already() {
  if (refused_by_capacity_ && (pool_.ending.empty() || !victims_.empty())) return false;
  const size_t mark = trial_.mark();
  const bool fits = (!refused_by_capacity_ || is_allowed_after_ends()) && place();
  trial_.rollback(mark);
  return fits;
}

/// Whether the ledger allows the gang when the gangs that are being stopped have ended. Releases
/// them in the trial.
bool VictimSelection::is_allowed_after_ends() {
  for (const GangState* const ending : pool_.ending) {
    const ProjectIndex leaf = entry_in(*ending, pool_).leaf;
    const bool ends_soon = !ending->overdue && !has_promise(*ending) && !is_on_silent_node(*ending);
    if (leaf == kNoProject || !ends_soon) continue;
    trial_.release(leaf, ending->counted, ending->gang.preemptible);
  }
  return !pool_.ledger.refuses(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible);
}

bool VictimSelection::has_free_in_all() {
  return least_needed(asking_).within(pool_.nodes.free_in_all(FreeWhen::kLater));
}

bool VictimSelection::place() {
  auto placed = trial_.place_later(asking_.gang.gang, asking_.counts, asking_.packing,
                                   held_bookings(asking_.gang));
  if (!placed) return false;
  bookings_ = *std::move(placed);
  return true;
}

std::vector<Booking> VictimSelection::held_by(const EvictionUnit& unit) const {
  std::vector<Booking> held;
  for (const int task : unit.tasks) {
    held.push_back(booking_in(unit.gang->tasks[static_cast<size_t>(task)], pool_));
  }
  return held;
}

void VictimSelection::evict(EvictionUnit unit, bool may_end) {
  for (const Booking& booking : held_by(unit)) trial_.begin_release(booking);
  trial_.release(unit.leaf, unit.amounts, unit.gang->gang.preemptible);
  victims_.push_back({.unit = std::move(unit), .may_end = may_end});
}

bool VictimSelection::is_worth_a_try() const {
  if (refused_by_capacity_) return true;
  const std::vector<Booking> held = held_by(victims_.back().unit);
  return std::any_of(held.begin(), held.end(), [&](const Booking& booking) {
    return booking.node >= 0 &&
           might_hold_one(pool_.nodes, booking.node, claims_, FreeWhen::kLater);
  });
}

// If a moved gang finds no other place, the next attempt leaves it in place, and evicts the units
// that were restored because of it. Each attempt leaves one more gang, so only a few are made.
std::optional<Decision> VictimSelection::conclude() {
  constexpr size_t kMostUnmovable = 4;
  std::vector<const GangState*> unmovable;
  while (unmovable.size() <= kMostUnmovable) {
    const GangState* stuck = nullptr;
    std::optional<Decision> decision = try_to_conclude(unmovable, stuck);
    if (decision || stuck == nullptr) return decision;
    unmovable.push_back(stuck);
  }
  return std::nullopt;
}

std::optional<Decision> VictimSelection::try_to_conclude(
    const std::vector<const GangState*>& unmovable, const GangState*& stuck) {
  const Ledger& ledger = pool_.ledger;
  if (ledger.refuses(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible)) {
    return std::nullopt;
  }
  const size_t mark = trial_.mark();
  const std::vector<Victim> before = victims_;
  if (!place()) return std::nullopt;
  trial_.allocate(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible);
  if (give_back_unneeded(unmovable)) {
    std::vector<Leaving> leaving = leaving_gangs();
    const bool all_must_move = std::none_of(leaving.begin(), leaving.end(),
                                            [](const Leaving& one) { return one.may_end; });
    if (all_must_move) {  // the unit that needs the most is placed first
      std::stable_sort(leaving.begin(), leaving.end(),
                       [](const Leaving& one, const Leaving& other) {
                         return size_of_largest(*one.unit.gang) > size_of_largest(*other.unit.gang);
                       });
    }
    std::optional<std::vector<EvictedTasks>> evicted = settle(leaving, stuck);
    const bool may_start = evicted && is_fair(*evicted) && leaves_limits();
    if (may_start) return decide(*std::move(evicted));
  }
  trial_.rollback(mark);
  victims_ = before;
  return std::nullopt;
}

std::optional<Decision> VictimSelection::conclude_chain() {
  const size_t mark = trial_.mark();
  if (!place()) return std::nullopt;
  trial_.allocate(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible);
  std::vector<Leaving> leaving;
  for (const Victim& victim : victims_) leaving.push_back({victim.unit, victim.may_end});
  const GangState* stuck = nullptr;
  std::optional<std::vector<EvictedTasks>> evicted = settle(leaving, stuck);
  const bool may_start = evicted && is_fair(*evicted) && leaves_limits();
  if (may_start) return decide(*std::move(evicted));
  trial_.rollback(mark);
  return std::nullopt;
}

std::optional<Decision> VictimSelection::decide(std::vector<EvictedTasks> evicted) {
  put_back_kept();
  return Decision{.bookings = bookings_, .evicted = std::move(evicted)};
}

/// A reclaimer above its share must not be better off than its victims; otherwise they would
/// reclaim the resources again.
bool VictimSelection::is_fair(const std::vector<EvictedTasks>& evicted) const {
  if (!must_be_fair_) return true;
  return std::all_of(evicted.begin(), evicted.end(), [&](const EvictedTasks& one) {
    if (one.moves_whole()) return true;
    const ProjectIndex victim = entry_in(*one.gang, pool_).leaf;
    return pool_.ledger.is_fair_between(asking_.entry.leaf, asking_.charge, victim) &&
           !could_take_back(one, victim);
  });
}

/// Whether the evicted gang could reclaim from the gang that starts what it asks for next: the rest
/// of its minimum, or one task. So it is where a project is over its share of one resource and, once
/// evicted, within its quota of another.
bool VictimSelection::could_take_back(const EvictedTasks& one, ProjectIndex victim) const {
  if (!asking_.gang.gang.preemptible) return false;
  const Gang& gang = one.gang->gang;
  std::vector<int> ended;  // those that are moved are booked again
  std::set_difference(one.tasks.begin(), one.tasks.end(), one.moved.begin(), one.moved.end(),
                      std::back_inserter(ended));
  const std::vector<int> groups = groups_of_tasks(gang);
  const auto group_of_task = [&](int task) {
    return static_cast<size_t>(groups[static_cast<size_t>(task)]);
  };
  std::vector<int> next = running_by_group(*one.gang);
  for (const int task : ended) --next[group_of_task(task)];
  for (size_t group = 0; group < next.size(); ++group) {
    next[group] = std::max(gang.groups[group].minimum - next[group], 0);
  }
  const bool has_minimum =
      std::all_of(next.begin(), next.end(), [](int count) { return count == 0; });
  if (has_minimum) ++next[group_of_task(ended.front())];
  const Amounts request = charge_of(entry_in(*one.gang, pool_), next);
  const Ledger& ledger = pool_.ledger;
  if (!ledger.may_reclaim(victim, request, gang.preemptible) ||
      !ledger.may_take(victim, request, asking_.entry.leaf)) {
    return false;
  }
  const auto [taking, losing] = ledger.siblings_above(victim, asking_.entry.leaf);
  return ledger.priority(losing) <= ledger.priority(taking) ||
         !ledger.order_key(taking, request).over_deserved_with_job;
}

/// Whether the gangs whose reservations this gang has to respect may still start.
bool VictimSelection::leaves_limits() const {
  if (limits_.empty()) return true;
  Trial without(pool_);
  without.release(asking_.entry.leaf, asking_.charge, asking_.gang.gang.preemptible);
  return first_held(pool_, limits_, asking_) == nullptr;
}

bool VictimSelection::is_on_the_nodes(const EvictionUnit& unit) const {
  const std::vector<Booking> held = held_by(unit);
  return std::any_of(held.begin(), held.end(), [&](const Booking& booking) {
    return std::any_of(bookings_.begin(), bookings_.end(),
                       [&](const Booking& own) { return own.node == booking.node; });
  });
}

// A gang's tasks beyond its minimum can continue only if its core does.
bool VictimSelection::is_core_evicted(const GangState& gang) const {
  return std::any_of(victims_.begin(), victims_.end(), [&](const Victim& one) {
    return one.unit.gang == &gang && one.unit.core && one.evicted;
  });
}

// In reverse order: the units evicted last are the most deserving. False: an unmovable unit is
// needed.
bool VictimSelection::give_back_unneeded(const std::vector<const GangState*>& unmovable) {
  const auto must_stay = [&](const Victim& victim) {
    return std::find(unmovable.begin(), unmovable.end(), victim.unit.gang) != unmovable.end();
  };
  for (size_t i = victims_.size(); i-- > 0 && !unmovable.empty();) {
    Victim& victim = victims_[i];
    if (!must_stay(victim)) continue;
    victim.evicted = !give_back(victim);
    if (victim.evicted) return false;
  }
  for (size_t i = victims_.size(); i-- > 0;) {
    Victim& victim = victims_[i];
    if (!victim.evicted) continue;
    const bool core_is_gone = !victim.unit.core && is_core_evicted(*victim.unit.gang);
    if (!core_is_gone) victim.evicted = !give_back(victim);
  }
  return true;
}

bool VictimSelection::give_back(Victim& victim) {
  const EvictionUnit& unit = victim.unit;
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

std::vector<VictimSelection::Leaving> VictimSelection::leaving_gangs() const {
  std::map<uint64_t, size_t> entries;
  std::vector<Leaving> leaving;
  for (auto victim = victims_.rbegin(); victim != victims_.rend(); ++victim) {
    if (!victim->evicted) continue;
    const EvictionUnit& unit = victim->unit;
    const auto [entry, is_new] = entries.try_emplace(unit.gang->number, leaving.size());
    if (is_new) {
      leaving.push_back({unit, victim->may_end});
      continue;
    }
    Leaving& together = leaving[entry->second];
    together.unit.tasks.insert(together.unit.tasks.end(), unit.tasks.begin(), unit.tasks.end());
    together.unit.amounts += unit.amounts;
    together.may_end = together.may_end && victim->may_end;
  }
  return leaving;
}

std::optional<std::vector<EvictedTasks>> VictimSelection::settle(
    const std::vector<Leaving>& leaving, const GangState*& stuck) {
  std::vector<EvictedTasks> result;
  for (const Leaving& one : leaving) {
    EvictedTasks evicted = settle_gang(one.unit);
    if (!one.may_end && !evicted.moves_whole()) {
      stuck = one.unit.gang;
      return std::nullopt;
    }
    if (!evicted.tasks.empty()) result.push_back(std::move(evicted));
  }
  return result;
}

/// Finds a place for each task of the unit: its present place if it is not needed, or another one.
/// The gang ends if its minimum finds no place.
EvictedTasks VictimSelection::settle_gang(const EvictionUnit& unit) {
  EvictedTasks evicted{.gang = unit.gang, .tasks = unit.tasks};
  std::sort(evicted.tasks.begin(), evicted.tasks.end());
  // A gang that has lost tasks would start as half a gang.
  if (is_below_minimum(*unit.gang)) return evicted;
  keep_in_place(evicted);
  if (!evicted.tasks.empty()) move(evicted);
  return evicted;
}

namespace {

/// Tasks of the gang, by group, that run and are not among `leaving`.
std::vector<int> staying_by_group(const GangState& gang, const std::vector<int>& leaving) {
  std::vector<int> staying = running_by_group(gang);
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  for (const int task : leaving) {
    --staying[static_cast<size_t>(groups[static_cast<size_t>(task)])];
  }
  return staying;
}

bool is_minimum(const Gang& gang, const std::vector<int>& by_group) {
  for (size_t group = 0; group < by_group.size(); ++group) {
    if (by_group[group] < gang.groups[group].minimum) return false;
  }
  return true;
}

}  // namespace

/// If a gang still has its minimum, its tasks continue on places that the trial has left free.
void VictimSelection::keep_in_place(EvictedTasks& evicted) {
  const GangState& gang = *evicted.gang;
  const PoolEntry& entry = entry_in(gang, pool_);
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  const size_t mark = trial_.mark();
  std::vector<int> leaving;
  for (const int task : evicted.tasks) {
    const Booking held = booking_in(gang.tasks[static_cast<size_t>(task)], pool_);
    const Amounts& charge = entry.charge[static_cast<size_t>(groups[static_cast<size_t>(task)])];
    const bool is_free = held.node < 0 || pool_.nodes.can_undo_release(held);
    if (!is_free || pool_.ledger.refuses(entry.leaf, charge, gang.gang.preemptible)) {
      leaving.push_back(task);
      continue;
    }
    trial_.undo_begin_release(held);
    trial_.allocate(entry.leaf, charge, gang.gang.preemptible);
  }
  if (is_minimum(gang.gang, staying_by_group(gang, leaving))) {
    evicted.tasks = std::move(leaving);
  } else {
    trial_.rollback(mark);
  }
}

/// Moves all tasks together if they fit. Otherwise moves the tasks that the minimum requires
/// together, and then as many of the others as fit.
void VictimSelection::move(EvictedTasks& evicted) {
  if (move_tasks(evicted, evicted.tasks)) return;
  const GangState& gang = *evicted.gang;
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  const auto group_of_task = [&](int task) {
    return static_cast<size_t>(groups[static_cast<size_t>(task)]);
  };
  std::vector<int> having = staying_by_group(gang, evicted.tasks);
  std::vector<int> minimum;
  std::vector<int> others;
  for (const int task : evicted.tasks) {
    const size_t group = group_of_task(task);
    const bool is_lacking = having[group] < gang.gang.groups[group].minimum;
    having[group] += is_lacking;
    (is_lacking ? minimum : others).push_back(task);
  }
  if (others.empty() || (!minimum.empty() && !move_tasks(evicted, minimum))) return;
  std::vector<bool> is_full(gang.gang.groups.size());
  for (const int task : others) {
    const size_t group = group_of_task(task);
    is_full[group] = is_full[group] || !move_tasks(evicted, {task});
  }
}

bool VictimSelection::move_tasks(EvictedTasks& evicted, const std::vector<int>& tasks) {
  const GangState& gang = *evicted.gang;
  const PoolEntry& entry = entry_in(gang, pool_);
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  std::vector<int> counts(gang.gang.groups.size());
  for (const int task : tasks) {
    ++counts[static_cast<size_t>(groups[static_cast<size_t>(task)])];
  }
  const Amounts amounts = charge_of(entry, counts);
  if (pool_.ledger.refuses(entry.leaf, amounts, gang.gang.preemptible)) return false;
  std::vector<Booking> beside = evicted.moved_to;
  for (size_t task = 0; task < gang.tasks.size(); ++task) {
    const TaskState& state = gang.tasks[task];
    const bool stays =
        state.phase == TaskPhase::kRunning && booking_in(state, pool_).node >= 0 &&
        !std::binary_search(evicted.tasks.begin(), evicted.tasks.end(), static_cast<int>(task));
    if (stays) beside.push_back(state.held);
  }
  auto placed =
      trial_.place_later(gang.gang, counts, gang.gang.packing.value_or(options_.packing), beside);
  if (!placed) return false;
  trial_.allocate(entry.leaf, amounts, gang.gang.preemptible);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto at = std::lower_bound(evicted.moved.begin(), evicted.moved.end(), tasks[i]);
    evicted.moved_to.insert(evicted.moved_to.begin() + (at - evicted.moved.begin()), (*placed)[i]);
    evicted.moved.insert(at, tasks[i]);
  }
  return true;
}

EvictionUnit unit_of(GangState& gang, const Pool& pool, std::vector<int> tasks, bool core) {
  const PoolEntry& entry = entry_in(gang, pool);
  EvictionUnit unit{.gang = &gang, .leaf = entry.leaf, .tasks = std::move(tasks), .core = core};
  for (const int task : unit.tasks) {
    const auto group = &group_of(gang.gang, task) - gang.gang.groups.data();
    unit.amounts += entry.charge[static_cast<size_t>(group)];
  }
  return unit;
}

VictimOrder::VictimOrder(Pool& pool, Filter may_be_victim)
    : pool_(pool),
      may_be_victim_(std::move(may_be_victim)),
      later_(pool.queues.size()),
      projects_(pool.queues.size()) {}

void VictimOrder::add(ProjectIndex leaf) {
  const ProjectQueue& queue = pool_.queue_of(leaf);
  Leaf& added = leaves_[leaf];
  added.extra = queue.extras.begin();
  added.core = queue.cores.begin();
  advance(leaf, added);
  update(leaf);
}

void VictimOrder::add_later(ProjectIndex leaf) {
  later_[static_cast<size_t>(leaf)] = true;
  update(leaf);
}

bool VictimOrder::is_later(ProjectIndex leaf) const {
  return leaf != kNoProject && later_[static_cast<size_t>(leaf)];
}

bool VictimOrder::take_extra(Leaf& leaf) {
  if (leaf.extras_left.empty()) return false;
  const int task = leaf.extras_left.back();
  leaf.extras_left.pop_back();
  leaf.taken[leaf.extras_of->number].insert(task);
  leaf.head = unit_of(*leaf.extras_of, pool_, {task}, false);
  return true;
}

void VictimOrder::advance(ProjectIndex index, Leaf& leaf) {
  const ProjectQueue& queue = pool_.queue_of(index);
  leaf.head.reset();
  while (!leaf.head) {
    if (take_extra(leaf)) return;
    const bool has_extra = leaf.extra != queue.extras.end();
    const bool has_core = leaf.core != queue.cores.end();
    if (!has_extra && !has_core) return;
    if (has_extra && (!has_core || leaf.extra->priority <= leaf.core->priority)) {
      GangState& gang = *(leaf.extra++)->gang;
      if (!may_be_victim(gang)) continue;
      leaf.extras_left = extra_tasks(gang);
      std::reverse(leaf.extras_left.begin(), leaf.extras_left.end());
      leaf.extras_of = &gang;
      continue;
    }
    GangState& gang = *(leaf.core++)->gang;
    if (!may_be_victim(gang)) continue;
    const auto extras = leaf.taken.find(gang.number);
    const auto is_taken = [&](int task) {
      return extras != leaf.taken.end() && extras->second.contains(task);
    };
    std::vector<int> rest;
    rest.reserve(gang.tasks.size());
    for (size_t task = 0; task < gang.tasks.size(); ++task) {
      const bool runs = gang.tasks[task].phase == TaskPhase::kRunning;
      if (runs && !is_taken(static_cast<int>(task))) rest.push_back(static_cast<int>(task));
    }
    if (!rest.empty()) leaf.head = unit_of(gang, pool_, std::move(rest), true);
  }
}

/// What an eviction takes from a project whose gangs were not looked at, at least: mostly exactly
/// what its first gang holds. No gang of it has been evicted yet.
Amounts VictimOrder::least_lost(ProjectIndex leaf) const {
  const ProjectQueue& queue = pool_.queue_of(leaf);
  return !may_be_victim_ && queue.extras.empty() ? queue.first_lost : Amounts{};
}

/// A project whose gangs were not looked at has a bound as its key: what it holds after the first
/// eviction at most.
void VictimOrder::enter(ProjectIndex project) {
  const ProjectIndex parent = pool_.ledger.parent(project);
  const ProjectIndex leaf = projects_.first_below(project);
  Amounts lost;
  if (is_later(leaf)) {
    lost = least_lost(leaf);
  } else {
    const auto known = leaves_.find(leaf);
    if (known == leaves_.end() || !known->second.head) return projects_.erase(project, parent);
    lost = known->second.head->amounts;
  }
  projects_.set(project, parent, pool_.ledger.order_key(project, kNothing - lost));
}

void VictimOrder::update(ProjectIndex leaf) {
  for (ProjectIndex level = leaf; level != kNoProject; level = pool_.ledger.parent(level)) {
    enter(level);
  }
}

std::optional<EvictionUnit> VictimOrder::next() {
  if (last_ != kNoProject) update(last_);  // its books have changed since
  ProjectIndex leaf = projects_.first_below(kNoProject);
  while (is_later(leaf)) {
    later_[static_cast<size_t>(leaf)] = false;
    add(leaf);
    leaf = projects_.first_below(kNoProject);
  }
  const auto found = leaves_.find(leaf);
  if (found == leaves_.end() || !found->second.head) return std::nullopt;
  EvictionUnit unit = *found->second.head;
  last_ = unit.leaf;
  advance(unit.leaf, found->second);
  return unit;
}

void VictimOrder::drop(ProjectIndex leaf) {
  leaves_.erase(leaf);
  update(leaf);
  if (last_ == leaf) last_ = kNoProject;
}

}  // namespace muster::schedule
