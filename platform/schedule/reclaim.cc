// Room for a gang from projects that hold more than they may.
#include <algorithm>

#include "schedule/evict.h"

namespace muster::schedule {

namespace {

/// A move spoils as much as it helps if half the pool has to move.
size_t most_moves(const Options& options) {
  return static_cast<size_t>(std::max(options.most_consolidation_victims, 0));
}

/// What other projects hold does not help against a limit of one's own.
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
  Reclaim(const Cycle& cycle, Pool& pool, Trial& trial, const Asking& asking)
      : cycle_(cycle), pool_(pool), trial_(trial), asking_(asking) {}

  /// First from those who hold too much, who may have to end for it; else by moving anybody.
  std::optional<Decision> find() {
    std::optional<Decision> decision = find_with(true);
    if (decision || !has_room_in_all(pool_, asking_.charge)) return decision;
    return find_with(false);
  }

 private:
  std::optional<Decision> find_with(bool may_end) {
    trial_.rollback(0);
    MakeRoom room(trial_, cycle_.options, pool_, asking_, true);
    if (room.fits_already()) return std::nullopt;
    VictimOrder victims(pool_, [&](const GangState& gang) { return may_be_victim(gang); });
    for (size_t leaf = 0; leaf < pool_.queues.size(); ++leaf) {
      const auto index = static_cast<ProjectIndex>(leaf);
      if (index == asking_.entry.leaf || pool_.queues[leaf].cores.empty()) continue;
      if (!may_end || may_take(index)) victims.add(index);
    }
    while (std::optional<Unit> unit = victims.next()) {
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

  /// Over its quota nobody takes from a project of higher priority: what nobody claims is that
  /// one's first.
  bool may_take(ProjectIndex victim) const {
    const Ledger& ledger = pool_.ledger;
    const ProjectIndex reclaimer = asking_.entry.leaf;
    if (!ledger.may_take(reclaimer, asking_.charge, victim)) return false;
    const auto [taking, losing] = ledger.siblings_above(reclaimer, victim);
    return ledger.priority(losing) <= ledger.priority(taking) ||
           !ledger.order_key(taking, asking_.charge).over_deserved_with_job;
  }

  bool may_be_victim(const GangState& gang) const {
    return !is_protected(cycle_, pool_, gang, &Project::reclaim_min_runtime);
  }

  const Cycle& cycle_;
  Pool& pool_;
  Trial& trial_;
  const Asking& asking_;
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
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  const std::optional<Decision> decision = Reclaim(cycle, pool, trial, asking).find();
  if (!decision) return false;
  carry_out(cycle, pool, trial, asking, *decision, EvictionCause::kReclaimed);
  for (const Evicted& evicted : decision->evicted) {
    order.update(entry_in(*evicted.gang, pool).leaf);
  }
  return true;
}

}  // namespace

std::optional<Decision> find_to_reclaim(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking) {
  const bool may =
      pool.ledger.may_reclaim(asking.entry.leaf, asking.charge, asking.gang.gang.preemptible);
  return may ? Reclaim(cycle, pool, trial, asking).find() : std::nullopt;
}

void reclaim(Cycle& cycle, Pool& pool) {
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (may_reclaim(pool, *waiting)) order.add(*waiting);
    }
  }
  const int cost = trials_of_one_search(pool);
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang =
        may_reclaim(pool, *waiting) ? first_that_may_evict(cycle, pool, *waiting) : nullptr;
    if (gang != nullptr && cycle.trials_left <= 0) return;
    if (gang != nullptr) cycle.trials_left -= cost;
    if (gang != nullptr && try_reclaim(cycle, pool, *gang, *waiting, order)) {
      order.add(*waiting);
      continue;
    }
    // What started in this plan is nobody's victim in it, but in the next.
    if (!pool.just_started.empty()) pool.look_again_at(cycle.now);
    waiting->reclaim_failed = pool.epoch;
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
