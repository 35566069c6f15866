#include "schedule/gang_books.h"

#include <algorithm>

namespace muster::schedule {

namespace {

void touch(Pool& pool) {
  pool.dirty = true;
  ++pool.epoch;
}

std::vector<Amounts> charges_of(const Gang& gang, const Pool& pool) {
  std::vector<Amounts> charges;
  for (const TaskGroup& group : gang.groups) charges.push_back(pool.nodes.charge(group.claim));
  return charges;
}

bool any_rises(const std::vector<Amounts>& before, const std::vector<Amounts>& now) {
  return !std::equal(before.begin(), before.end(), now.begin(), now.end(),
                     [](const Amounts& one, const Amounts& other) { return other.within(one); });
}

/// A gang that waits again is charged like all others.
void charge_as_others(GangState& gang) {
  for (PoolEntry& entry : gang.entries) {
    if (!entry.keeps_charge) continue;
    entry.keeps_charge = false;
    entry.charge = charges_of(gang.gang, *entry.pool);
  }
}

/// A gang that waits in several pools requests the same in each of them.
void count_repeated(GangState& gang) {
  for (PoolEntry& entry : gang.entries) {
    if (entry.leaf == kNoProject) continue;
    const bool is_first = &entry == &gang.entries.front();
    const Amounts repeated = gang.home == nullptr && !is_first ? entry.requested : Amounts{};
    if (repeated == entry.repeated) continue;
    WideAmounts& sum = entry.pool->repeated_requests[entry.leaf];
    sum -= entry.repeated;
    sum += repeated;
    entry.repeated = repeated;
  }
}

void count_requests(GangState& gang) {
  for (PoolEntry& entry : gang.entries) {
    if (entry.leaf == kNoProject) continue;
    Amounts requested;
    if (gang.home == nullptr || gang.home == entry.pool) {
      for (size_t group = 0; group < entry.charge.size(); ++group) {
        requested += entry.charge[group] * gang.gang.groups[group].count;
      }
    }
    if (requested == entry.requested) continue;
    entry.pool->ledger.remove_request(entry.leaf, entry.requested);
    entry.pool->ledger.add_request(entry.leaf, requested);
    entry.requested = requested;
    touch(*entry.pool);
  }
  count_repeated(gang);
}

void set_counted(GangState& gang, const Amounts& counted) {
  gang.home->counted += counted - gang.counted;
  gang.counted = counted;
}

void count_allocated(GangState& gang) {
  const PoolEntry& entry = entry_in(gang, *gang.home);
  const Amounts counted = counted_amounts(gang);
  if (entry.leaf == kNoProject || counted == gang.counted) return;
  Ledger& ledger = gang.home->ledger;
  ledger.release(entry.leaf, gang.counted, gang.gang.preemptible);
  ledger.allocate(entry.leaf, counted, gang.gang.preemptible);
  set_counted(gang, counted);
}

void enter_victim(GangState& gang, std::set<VictimKey>& among, std::optional<VictimKey>& entered,
                  std::optional<VictimKey> key) {
  if (entered && key && !(*entered < *key) && !(*key < *entered)) return;
  if (entered) among.erase(*entered);
  entered = key;
  if (key) {
    key->gang = &gang;
    among.insert(*key);
  }
}

/// Only tasks that run undisturbed are victims: no leaving tasks, and no gangs with a promise. A gang
/// on a silent node is no victim either: its end is reported when all of its tasks have ended.
void index_as_victim(GangState& gang, Pool& home) {
  const ProjectIndex leaf = entry_in(gang, home).leaf;
  if (leaf == kNoProject) return;
  ProjectQueue& queue = home.queue_of(leaf);
  std::optional<VictimKey> core;
  std::optional<VictimKey> extras;
  const bool just_started = gang.started_in != 0 && gang.started_in == home.plan;
  if (just_started) home.just_started.insert(&gang);
  const bool undisturbed = running_tasks(gang) > 0 && !has_promise(gang) && !is_leaving(gang) &&
                           !is_on_silent_node(gang);
  if (gang.gang.preemptible && undisturbed && !just_started) {
    core = VictimKey{.priority = gang.gang.priority,
                     .below_minimum = is_below_minimum(gang),
                     .sequence = gang.gang.sequence,
                     .number = gang.number,
                     .gang = &gang};
    if (is_elastic(gang.gang) && !extra_tasks(gang).empty()) {
      extras = core;
      extras->below_minimum = false;
    }
  }
  enter_victim(gang, queue.cores, gang.core, core);
  enter_victim(gang, queue.extras, gang.extras, extras);
  queue.first_lost = queue.cores.empty() ? Amounts{} : queue.cores.begin()->gang->counted;
  index_contested(home, leaf);
}

bool is_ending(const GangState& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(),
                     [](const TaskState& task) { return task.counts_until_end; });
}

/// On a silent node, nothing can end a gang that is past its time limit.
void index_expected_end(GangState& gang, Pool& home) {
  std::optional<Time> end;
  const bool ends = is_ending(gang) && !gang.overdue;
  const bool can_end = (running_tasks(gang) > 0 || ends) && !is_on_silent_node(gang);
  if (gang.gang.time_limit && gang.started && can_end) {
    // A gang that is being stopped may end at any moment.
    end = ends ? *gang.started : *gang.started + *gang.gang.time_limit;
  }
  if (end == gang.expected_end) return;
  if (gang.expected_end) home.expected_ends.erase({*gang.expected_end, gang.number, &gang});
  if (end) home.expected_ends.insert({*end, gang.number, &gang});
  gang.expected_end = end;
}

void index_at_home(GangState& gang, Pool& home) {
  index_as_victim(gang, home);
  index_expected_end(gang, home);
  const bool promised = has_promise(gang);
  const bool stale = !promised && is_below_minimum(gang);
  if (!stale) gang.stale_since.reset();
  promised ? static_cast<void>(home.promised.insert(&gang))
           : static_cast<void>(home.promised.erase(&gang));
  stale ? static_cast<void>(home.stale.insert(&gang)) : static_cast<void>(home.stale.erase(&gang));
  is_ending(gang) ? static_cast<void>(home.ending.insert(&gang))
                  : static_cast<void>(home.ending.erase(&gang));
}

SharedRequest& ask_of(Pool& pool, const GangState& gang, RequestKey key) {
  const auto [entry, is_new] = pool.asks.try_emplace(key);
  SharedRequest& ask = entry->second;
  if (is_new) {
    for (size_t group = 0; group < key.counts.size(); ++group) {
      if (key.counts[group] > 0) ask.claims.push_back(gang.gang.groups[group].claim);
    }
    ask.key = std::move(key);
  }
  return ask;
}

/// Where a gang has part of its tasks running, a required topology ties the others to them.
bool depends_on_the_rest(const GangState& gang) {
  return !gang.gang.required_topology.empty() && running_tasks(gang) > 0;
}

void set_charge(Pool& pool, WaitClass& waiting, const Amounts& charge) {
  waiting.charge = charge;
  Amounts& least = pool.queue_of(waiting.leaf).least_charge;
  least = least_of(least, charge);
  waiting.ask->least_charge = least_of(waiting.ask->least_charge, charge);
  pool.least_charge = least_of(pool.least_charge, charge);
  pool.classes_changed(waiting.leaf);
}

WaitClass& class_of(const PoolEntry& entry, const GangState& gang, const NextRequest& next) {
  Pool& pool = *entry.pool;
  const bool is_apart = depends_on_the_rest(gang) || entry.keeps_charge;
  ClassKey key{
      .priority = gang.gang.priority,
      .state = next.state,
      .preemptible = gang.gang.preemptible,
      .ask = {.shape = gang.shape, .counts = next.counts, .gang = is_apart ? gang.number : 0}};
  std::unique_ptr<WaitClass>& slot = pool.queue_of(entry.leaf).classes[key];
  if (!slot) {
    slot = std::make_unique<WaitClass>();
    slot->number = ++pool.classes;
    slot->leaf = entry.leaf;
    slot->ask = &ask_of(pool, gang, key.ask);
    slot->ask->classes.push_back(slot.get());
    slot->key = std::move(key);
    set_charge(pool, *slot, charge_of(entry, next.counts));
    index_contested(pool, entry.leaf);
  } else if (const Amounts charge = charge_of(entry, next.counts); !(slot->charge == charge)) {
    set_charge(pool, *slot, charge);
  }
  return *slot;
}

void leave_class(GangState& gang, PoolEntry& entry) {
  if (entry.waits_in == nullptr) return;
  WaitClass& left = *entry.waits_in;
  const bool was_head = &left.head() == &gang;
  left.waiters.erase(&gang);
  entry.pool->entered.erase(&gang);
  if (was_head) entry.pool->classes_changed(left.leaf);
  if (was_head && !left.waiters.empty()) entry.pool->note_new_head(left);
  left.unexplained.erase(&gang);
  if (left.waiters.empty() && !left.emptied) {
    left.emptied = true;
    entry.pool->empty_classes.push_back(&left);
  }
  entry.waits_in = nullptr;
  entry.pool->dirty = true;
}

void wait_in(GangState& gang, PoolEntry& entry, const std::optional<NextRequest>& next) {
  Pool& pool = *entry.pool;
  const bool waits = next && (gang.home == nullptr || gang.home == &pool);
  const bool has_leaf = is_leaf(pool, entry.leaf);
  waits && !has_leaf ? static_cast<void>(pool.homeless.insert(&gang))
                     : static_cast<void>(pool.homeless.erase(&gang));
  WaitClass* joined = waits && has_leaf ? &class_of(entry, gang, *next) : nullptr;
  if (joined == entry.waits_in) return;
  leave_class(gang, entry);
  if (joined == nullptr) return;
  joined->waiters.insert(&gang);
  joined->unexplained.insert(&gang);
  if (!joined->only_grows()) pool.entered.insert(&gang);
  pool.explain_later(*joined);
  if (!waits_for_room(*joined)) pool.doubt(*joined);
  if (&joined->head() == &gang) {
    pool.classes_changed(joined->leaf);
    pool.note_new_head(*joined);
  }
  entry.waits_in = joined;
  pool.dirty = true;
}

}  // namespace

Amounts counted_amounts(const GangState& gang) {
  const PoolEntry& entry = entry_in(gang, *gang.home);
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  Amounts counted;
  for (size_t task = 0; task < gang.tasks.size(); ++task) {
    const TaskState& state = gang.tasks[task];
    if (state.phase == TaskPhase::kRunning || state.promised || state.counts_until_end) {
      counted += entry.charge[static_cast<size_t>(groups[task])];
    }
  }
  return counted;
}

void recount_after_trial(GangState& gang) {
  set_counted(gang, counted_amounts(gang));
}

void end_plan(Pool& pool) {
  pool.plan = 0;
  const GangSet started = std::exchange(pool.just_started, {});
  for (GangState* const gang : started) {
    if (gang->home == &pool) index_as_victim(*gang, pool);
  }
}

namespace {

/// Most gangs with leaving tasks end as a whole, and their end is reported when all of their tasks
/// have ended. As long as one of them is on a silent node, or if the gang is overdue, what the
/// leaving tasks hold is not expected to become free.
void settle_stuck(GangState& gang) {
  const bool stuck = gang.overdue || is_on_silent_node(gang);
  for (TaskState& task : gang.tasks) {
    const bool leaves = task.phase == TaskPhase::kLeaving && task.held.node >= 0;
    if (!leaves || std::exchange(task.stuck, stuck) == stuck) continue;
    Pool& pool = *task.held_in;
    stuck ? pool.nodes.undo_begin_release(task.held) : pool.nodes.begin_release(task.held);
    touch(pool);
  }
}

}  // namespace

void refresh(GangState& gang) {
  if (is_leaving(gang)) settle_stuck(gang);
  if (!holds_anything(gang)) {
    charge_as_others(gang);
    gang.ends_by.reset();
    gang.overdue = false;
  }
  if (Pool* const home = gang.home; home != nullptr) {
    count_allocated(gang);
    index_at_home(gang, *home);
    touch(*home);
    if (!holds_anything(gang)) gang.home = nullptr;
  }
  if (running_tasks(gang) == 0 && !is_leaving(gang)) gang.started.reset();
  count_requests(gang);
  const std::optional<NextRequest> next = gang.not_before ? std::nullopt : next_request_of(gang);
  // A gang that was promised its minimum still waits.
  const bool waits = has_promise(gang) || (next && next->state == ElasticState::kBelowMinimum);
  if (!waits) gang.waits_since.reset();
  for (PoolEntry& entry : gang.entries) wait_in(gang, entry, next);
}

void withdraw(GangState& gang) {
  for (PoolEntry& entry : gang.entries) {
    leave_class(gang, entry);
    entry.pool->homeless.erase(&gang);
    if (entry.leaf == kNoProject) continue;
    entry.pool->ledger.remove_request(entry.leaf, entry.requested);
    entry.requested = {};
    if (entry.repeated != Amounts{}) entry.pool->repeated_requests[entry.leaf] -= entry.repeated;
    entry.repeated = {};
    touch(*entry.pool);
  }
}

void find_leaf(GangState& gang, PoolEntry& entry) {
  if (entry.leaf != kNoProject) return;
  entry.leaf = entry.pool->ledger.find(gang.gang.project);
}

bool charge_anew(GangState& gang, Pool& pool) {
  PoolEntry& entry = entry_in(gang, pool);
  std::vector<Amounts> charges = charges_of(gang.gang, pool);
  if (gang.home == &pool && any_rises(entry.charge, charges)) {
    // Its class, if the gang grows, has gangs of the same charge only.
    return !std::exchange(entry.keeps_charge, true);
  }
  const bool kept = std::exchange(entry.keeps_charge, false);
  if (charges == entry.charge) return kept;
  entry.charge = std::move(charges);
  return true;
}

void enter(GangState& gang, Pool& pool) {
  PoolEntry entry{.pool = &pool, .charge = charges_of(gang.gang, pool)};
  find_leaf(gang, entry);
  gang.entries.push_back(std::move(entry));
}

void settle_in(GangState& gang, Pool& pool, int task, const Booking& booking) {
  TaskState& state = gang.tasks[static_cast<size_t>(task)];
  state.phase = TaskPhase::kRunning;
  state.held = booking;
  state.held_in = &pool;
  state.seated = ++pool.seatings;
  gang.home = &pool;
  if (booking.node >= 0) pool.tenants_of(booking.node).push_back({&gang, task});
}

void occupy(GangState& gang, Pool& home, int task, Pool& held_in, const Booking& booking) {
  if (booking.node >= 0) held_in.nodes.book(booking);
  settle_in(gang, held_in, task, booking);
  if (&held_in != &home) {
    touch(held_in);
    if (booking.node >= 0) ++home.elsewhere;
  }
  gang.home = &home;
}

void begin_to_leave(GangState& gang, int task) {
  TaskState& state = gang.tasks[static_cast<size_t>(task)];
  state.phase = TaskPhase::kLeaving;
  if (state.held.node >= 0) state.held_in->nodes.begin_release(state.held);
}

namespace {

void leave_node(GangState& gang, int task) {
  TaskState& state = gang.tasks[static_cast<size_t>(task)];
  if (state.held.node < 0) return;
  Pool& pool = *state.held_in;
  if (state.phase == TaskPhase::kRunning || state.stuck) {
    pool.nodes.unbook(state.held);
  } else {
    pool.nodes.end_release(state.held);
  }
  std::erase_if(pool.tenants_of(state.held.node),
                [&](const Tenant& tenant) { return tenant.gang == &gang && tenant.task == task; });
  pool.grown.push_back(state.held.node);
  if (&pool != gang.home) {
    touch(pool);
    --gang.home->elsewhere;
  }
  state.held.node = -1;
  state.stuck = false;
}

}  // namespace

MakesRoomFor vacate(GangState& gang, int task) {
  TaskState& state = gang.tasks[static_cast<size_t>(task)];
  if (state.phase == TaskPhase::kOpen) return {};
  leave_node(gang, task);
  state.phase = TaskPhase::kOpen;
  state.counts_until_end = false;
  return std::exchange(state.leaves_for, {});
}

void lose_node(GangState& gang, int task) {
  leave_node(gang, task);
}

void drop_promise(GangState& gang) {
  for (TaskState& task : gang.tasks) {
    if (!task.promised) continue;
    gang.home->nodes.unreserve(*task.promised);
    gang.home->grown.push_back(task.promised->node);
    task.promised.reset();
  }
  ++gang.promise;
  gang.leaving_for_it = 0;
}

namespace {

/// Removes classes that are about to be deleted from a list.
void drop_empty_from(std::vector<WaitClass*>& list, bool WaitClass::* is_listed,
                     const std::vector<WaitClass*>& empty) {
  const bool any = std::any_of(empty.begin(), empty.end(), [&](const WaitClass* one) {
    return one->waiters.empty() && one->*is_listed;
  });
  if (!any) return;
  std::erase_if(list, [&](WaitClass* one) {
    if (!one->waiters.empty()) return false;
    one->*is_listed = false;
    return true;
  });
}

}  // namespace

void drop_empty_classes(Pool& pool) {
  drop_empty_from(pool.to_explain, &WaitClass::needs_explanation, pool.empty_classes);
  drop_empty_from(pool.unsure, &WaitClass::is_unsure, pool.empty_classes);
  drop_empty_from(pool.new_heads, &WaitClass::has_new_head, pool.empty_classes);
  for (WaitClass* const empty : pool.empty_classes) {
    empty->emptied = false;
    if (!empty->waiters.empty()) continue;
    std::erase(empty->ask->classes, empty);
    if (empty->ask->classes.empty()) pool.asks.erase(RequestKey(empty->ask->key));
    const ProjectIndex leaf = empty->leaf;
    pool.queue_of(leaf).classes.erase(ClassKey(empty->key));
    index_contested(pool, leaf);
    pool.classes_changed(leaf);
  }
  pool.empty_classes.clear();
}

}  // namespace muster::schedule
