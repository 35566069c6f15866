// Room for a gang from less important ones of its own project.
#include <algorithm>

#include "schedule/evict.h"

namespace muster::schedule {

namespace {

bool has_lesser_running(const Pool& pool, const WaitClass& waiting) {
  const std::set<VictimKey>& cores = pool.queues[static_cast<size_t>(waiting.leaf)].cores;
  return !cores.empty() && cores.begin()->priority < waiting.key.priority;
}

/// It waits for what an eviction in its own project can give.
bool may_preempt(const Pool& pool, const WaitClass& waiting) {
  return !waiting.waiters.empty() && waiting.preemption_failed != pool.epoch &&
         waiting.constraint != Constraint::kQuota && has_lesser_running(pool, waiting);
}

bool try_preempt(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  const std::optional<Decision> decision = find_to_preempt(cycle, pool, trial, asking);
  if (!decision) return false;
  carry_out(cycle, pool, trial, asking, *decision, EvictionCause::kPreempted);
  return true;
}

}  // namespace

std::optional<Decision> find_to_preempt(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking) {
  MakeRoom room(trial, cycle.options, pool, asking, false);
  if (room.fits_already()) return std::nullopt;
  VictimOrder victims(pool, [&](const GangState& gang) {
    return gang.gang.priority < asking.gang.gang.priority &&
           !is_protected(cycle, pool, gang, &Project::preempt_min_runtime);
  });
  victims.add(asking.entry.leaf);
  while (std::optional<Unit> unit = victims.next()) {
    room.evict(*std::move(unit), true);
    if (!room.is_worth_a_try()) continue;
    if (std::optional<Decision> decision = room.conclude()) return decision;
  }
  return std::nullopt;
}

void preempt(Cycle& cycle, Pool& pool) {
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (may_preempt(pool, *waiting)) order.add(*waiting);
    }
  }
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang = first_that_may_evict(cycle, pool, *waiting);
    if (gang != nullptr && cycle.trials_left-- <= 0) return;
    if (gang != nullptr && try_preempt(cycle, pool, *gang, *waiting)) {
      order.add(*waiting);
      continue;
    }
    waiting->preemption_failed = pool.epoch;
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
