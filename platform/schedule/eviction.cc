#include "schedule/eviction.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "schedule/gang_books.h"

namespace muster::schedule {

namespace {

void promise(Cycle& cycle, Pool& pool, GangState& gang, const std::vector<int>& tasks,
             const std::vector<Booking>& bookings) {
  PlannedStart coming{.id = gang.gang.id, .tasks = tasks};
  for (size_t i = 0; i < tasks.size(); ++i) {
    gang.tasks[static_cast<size_t>(tasks[i])].promised = bookings[i];
    coming.places.push_back(pool.nodes.place_of(bookings[i]));
  }
  cycle.plan.promises.push_back(std::move(coming));
  gang.home = &pool;
}

void send_away(Cycle& cycle, Pool& pool, const EvictedTasks& evicted, const MakesRoomFor& whom) {
  GangState& gang = *evicted.gang;
  for (const int task : evicted.tasks) {
    TaskState& state = gang.tasks[static_cast<size_t>(task)];
    // The trial has begun the release on the nodes of this pool.
    const bool is_elsewhere = state.held.node >= 0 && state.held_in != &pool;
    is_elsewhere ? begin_to_leave(gang, task)
                 : static_cast<void>(state.phase = TaskPhase::kLeaving);
    state.leaves_for = whom;
  }
  if (!evicted.moved.empty()) promise(cycle, pool, gang, evicted.moved, evicted.moved_to);
  if (!evicted.moves_whole()) gang.cools_until = cycle.now + cycle.options.cooldown;
  // The trial has booked that already.
  recount_after_trial(gang);
}

}  // namespace

std::vector<Eviction> evictions_of(const Pool& pool, Trial& trial, const PlacementRequest& request,
                                   const Decision& decision, EvictionCause cause, Tense tense) {
  std::vector<Eviction> evictions;
  const Gang& by = request.gang.gang;
  trial.lift_books();
  for (const EvictedTasks& evicted : decision.evicted) {
    const Gang& victim = evicted.gang->gang;
    const EvictionCause its_cause = evicted.moves_whole() ? EvictionCause::kMoved : cause;
    evictions.push_back({.id = victim.id,
                         .tasks = evicted.tasks,
                         .moved = evicted.moved,
                         .cause = its_cause,
                         .by = by.id,
                         .why = eviction_fact(victim, by, its_cause, pool.ledger, tense)});
  }
  trial.restore_books();
  return evictions;
}

void carry_out(Cycle& cycle, Pool& pool, Trial& trial, const PlacementRequest& request,
               const Decision& decision, EvictionCause cause) {
  std::vector<Eviction> evictions = evictions_of(pool, trial, request, decision, cause);
  std::move(evictions.begin(), evictions.end(), std::back_inserter(cycle.plan.evictions));
  trial.commit();
  GangState& gang = request.gang;
  for (const PoolEntry& entry : gang.entries) {
    if (entry.pool != &pool) drop_reservation(*entry.pool, gang);
  }
  const std::vector<int> tasks = open_tasks(gang, request.counts);
  promise(cycle, pool, gang, tasks, decision.bookings);
  recount_after_trial(gang);
  ++gang.promise;
  gang.leaving_for_it = 0;
  for (const EvictedTasks& evicted : decision.evicted) {
    gang.leaving_for_it += static_cast<int>(evicted.tasks.size());
    send_away(cycle, pool, evicted, {.gang = gang.number, .promise = gang.promise});
    refresh(*evicted.gang);
  }
  forget_reservation(pool, gang);
  refresh(gang);
}

void evict_rest(Cycle& cycle, GangState& gang) {
  Eviction eviction{.id = gang.gang.id, .cause = EvictionCause::kStale};
  eviction.why = job::Stale{.running = running_tasks(gang),
                            .minimum = minimum_tasks(gang.gang),
                            .grace = *cycle.options.stale_grace};
  for (size_t task = 0; task < gang.tasks.size(); ++task) {
    if (gang.tasks[task].phase != TaskPhase::kRunning) continue;
    begin_to_leave(gang, static_cast<int>(task));
    eviction.tasks.push_back(static_cast<int>(task));
  }
  cycle.plan.evictions.push_back(std::move(eviction));
  refresh(gang);
}

// Gangs that have run below their minimum for longer than the grace hold room for nothing.

void evict_stale(Cycle& cycle, Pool& pool) {
  if (!cycle.options.stale_grace) return;
  const std::vector<GangState*> stale(pool.stale.begin(), pool.stale.end());
  for (GangState* const gang : stale) {
    // The time is known for gangs that lost a task here; other gangs get the whole grace period.
    if (!gang->stale_since) gang->stale_since = cycle.now;
    const Time until = *gang->stale_since + *cycle.options.stale_grace;
    if (cycle.now < until) {
      pool.look_again_at(until);
    } else {
      evict_rest(cycle, *gang);
    }
  }
}

// Room for a gang from less important ones of its own project.

namespace {

/// The least priority of the gangs that this plan started, by project. They can become victims in
/// the next plan, not in this one.
std::map<ProjectIndex, int> least_started(const Pool& pool) {
  std::map<ProjectIndex, int> least;
  for (const GangState* const gang : pool.just_started) {
    if (!gang->gang.preemptible) continue;
    const auto [entry, is_new] = least.try_emplace(entry_in(*gang, pool).leaf, gang->gang.priority);
    entry->second = std::min(entry->second, gang->gang.priority);
  }
  return least;
}

/// An eviction in the gang's own project can give it what it waits for.
bool may_preempt(const Pool& pool, const WaitClass& waiting) {
  return !waiting.waiters.empty() && waiting.preemption_failed != pool.epoch &&
         waiting.constraint != Constraint::kQuota && has_lesser_running(pool, waiting);
}

bool try_preempt(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  const PlacementRequest request = request_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  const std::optional<Decision> decision = find_to_preempt(cycle, pool, trial, request);
  if (!decision) return false;
  carry_out(cycle, pool, trial, request, *decision, EvictionCause::kPreempted);
  return true;
}

}  // namespace

std::optional<Decision> find_to_preempt(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const PlacementRequest& request) {
  VictimSelection room(trial, cycle.options, pool, request, false);
  if (room.fits_already()) return std::nullopt;
  VictimOrder victims(pool, [&](const GangState& gang) {
    return gang.gang.priority < request.gang.gang.priority &&
           !is_protected(cycle, pool, gang, &Project::preempt_min_runtime);
  });
  victims.add(request.entry.leaf);
  while (std::optional<EvictionUnit> unit = victims.next()) {
    room.evict(*std::move(unit), true);
    if (!room.is_worth_a_try()) continue;
    if (std::optional<Decision> decision = room.conclude()) return decision;
  }
  return std::nullopt;
}

void preempt(Cycle& cycle, Pool& pool) {
  if (pool.contested.empty()) return;
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectIndex leaf : pool.contested) {
    const ProjectQueue& queue = pool.queue_of(leaf);
    const int least = queue.cores.begin()->priority;
    for (auto at = queue.classes.rbegin(); at != queue.classes.rend() && at->first.priority > least;
         ++at) {
      if (may_preempt(pool, *at->second)) order.add(*at->second);
    }
  }
  const std::map<ProjectIndex, int> started = least_started(pool);
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang = first_that_may_evict(cycle, pool, *waiting);
    if (gang != nullptr && cycle.trials_left-- <= 0) {
      pool.unfinished = true;
      return;
    }
    if (gang != nullptr && try_preempt(cycle, pool, *gang, *waiting)) {
      order.add(*waiting);
      continue;
    }
    const auto lesser = started.find(waiting->leaf);
    const bool may_help_later = lesser != started.end() && lesser->second < waiting->key.priority;
    if (gang != nullptr && may_help_later) pool.look_again_at(cycle.now);
    waiting->preemption_failed = pool.epoch;
    order.drop(*waiting);
  }
}

// Room for a gang from projects that hold more than they may.

namespace {

/// A move spoils as much as it helps if half the pool has to move.
size_t most_moves(const Options& options) {
  return static_cast<size_t>(std::max(options.most_consolidation_victims, 0));
}

/// Resources that other projects hold do not help against a limit of the project itself.
bool is_at_its_own_limit(const Pool& pool, const WaitClass& waiting) {
  const auto refusal = pool.ledger.refuses(waiting.leaf, waiting.charge, waiting.key.preemptible);
  return refusal && refusal->project == waiting.leaf;
}

bool may_reclaim(const Pool& pool, const WaitClass& waiting) {
  return !waiting.waiters.empty() && waiting.reclaim_failed != pool.epoch &&
         pool.ledger.may_reclaim(waiting.leaf, waiting.charge, waiting.key.preemptible) &&
         !is_at_its_own_limit(pool, waiting);
}

class Reclaim {
 public:
  Reclaim(const Cycle& cycle, Pool& pool, Trial& trial, const PlacementRequest& request)
      : cycle_(cycle), pool_(pool), trial_(trial), asking_(request) {}

  /// First evicts gangs of projects above their share, which may have to end; else moves any gang.
  std::optional<Decision> find() {
    std::optional<Decision> decision = find_with(true);
    if (decision || !has_room_in_all(pool_, asking_.charge)) return decision;
    return find_with(false);
  }

 private:
  std::optional<Decision> find_with(bool may_end) {
    trial_.rollback(0);
    VictimSelection room(trial_, cycle_.options, pool_, asking_, true);
    if (room.fits_already()) return std::nullopt;
    VictimOrder victims(pool_, may_be_victim());
    for (size_t leaf = 0; leaf < pool_.queues.size(); ++leaf) {
      const auto index = static_cast<ProjectIndex>(leaf);
      if (index == asking_.entry.leaf || pool_.queues[leaf].cores.empty()) continue;
      if (may_end && !may_take(index)) continue;
      // To look at a gang that is protected for a while also notes when to plan again.
      const bool looks_at_all = !may_end && cycle_.has_min_runtimes;
      looks_at_all ? victims.add(index) : victims.add_later(index);
    }
    while (std::optional<EvictionUnit> unit = victims.next()) {
      const bool is_takeable = may_take(unit->leaf);
      if (may_end && !is_takeable) {
        victims.drop(unit->leaf);
        continue;
      }
      if (!may_end && room.evicted() >= most_moves(cycle_.options)) break;
      room.evict(*std::move(unit), is_takeable);
      if (!room.is_worth_a_try()) continue;
      if (std::optional<Decision> decision = room.conclude()) return decision;
    }
    return std::nullopt;
  }

  /// A project over its quota takes nothing from a project of higher priority, which is entitled
  /// to unclaimed resources first.
  bool may_take(ProjectIndex victim) const {
    const Ledger& ledger = pool_.ledger;
    const ProjectIndex reclaimer = asking_.entry.leaf;
    if (!ledger.may_take(reclaimer, asking_.charge, victim)) return false;
    const auto [taking, losing] = ledger.siblings_above(reclaimer, victim);
    return ledger.priority(losing) <= ledger.priority(taking) ||
           !ledger.order_key(taking, asking_.charge).over_deserved_with_job;
  }

  VictimOrder::Filter may_be_victim() const {
    if (!cycle_.has_min_runtimes) return {};
    return [this](const GangState& gang) {
      return !is_protected(cycle_, pool_, gang, &Project::reclaim_min_runtime);
    };
  }

  const Cycle& cycle_;
  Pool& pool_;
  Trial& trial_;
  const PlacementRequest& asking_;
};

/// A trial compares every project that has anything to lose: among many, it counts as several.
int trials_of_one_search(const Pool& pool) {
  constexpr auto kProjectsOfOneTrial = 64;
  const auto projects =
      std::count_if(pool.queues.begin(), pool.queues.end(),
                    [](const ProjectQueue& queue) { return !queue.cores.empty(); });
  return 1 + static_cast<int>(projects / kProjectsOfOneTrial);
}

bool try_reclaim(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting,
                 ServeOrder& order) {
  const PlacementRequest request = request_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  const std::optional<Decision> decision = Reclaim(cycle, pool, trial, request).find();
  if (!decision) return false;
  carry_out(cycle, pool, trial, request, *decision, EvictionCause::kReclaimed);
  for (const EvictedTasks& evicted : decision->evicted) {
    order.update(entry_in(*evicted.gang, pool).leaf);
  }
  return true;
}

}  // namespace

std::optional<Decision> find_to_reclaim(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const PlacementRequest& request) {
  const bool may =
      pool.ledger.may_reclaim(request.entry.leaf, request.charge, request.gang.gang.preemptible);
  return may ? Reclaim(cycle, pool, trial, request).find() : std::nullopt;
}

void reclaim(Cycle& cycle, Pool& pool) {
  ServeOrder order(pool, cycle.options.policy);
  const auto enter_classes = [&](ProjectIndex leaf) {
    for (const QueuedClass& one : classes_in_order(pool.queue_of(leaf))) {
      if (may_reclaim(pool, *one.waiting)) order.add(one);
    }
  };
  // Most projects have their share: then not even the smallest request may reclaim. And the trials
  // of a plan mostly end before each of the others was looked at.
  pool.rankings.update(pool);
  order.add_ranked(pool.rankings.reclaiming(), pool.rankings.least_charge(), enter_classes);
  const int cost = trials_of_one_search(pool);
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang =
        may_reclaim(pool, *waiting) ? first_that_may_evict(cycle, pool, *waiting) : nullptr;
    if (gang != nullptr && cycle.trials_left <= 0) {
      pool.unfinished = true;
      return;
    }
    if (gang != nullptr) cycle.trials_left -= cost;
    if (gang != nullptr && try_reclaim(cycle, pool, *gang, *waiting, order)) {
      order.add(*waiting);
      continue;
    }
    // Gangs that start in this plan can become victims in the next plan, not in this one.
    if (!pool.just_started.empty()) pool.look_again_at(cycle.now);
    waiting->reclaim_failed = pool.epoch;
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
