// One cycle of the scheduler: the actions that make a plan, in the order in which they run on a
// pool, and the data that they share.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/pool.h"
#include "schedule/scheduler.h"
#include "schedule/serve_order.h"

namespace muster::schedule {

struct Cycle {
  const Options& options;
  const std::unordered_map<std::string, Project>& projects;  ///< by name
  bool has_min_runtimes;  ///< of any project; false: no gang is protected
  Time now;
  uint64_t number;  ///< of the plan, from 1
  Plan plan;
  int trials_left;  ///< eviction trials that the running action may still make in this pool
};

/// Whether the gang has run for less than the `minimum` of its project. If so, the pool is
/// scheduled again when that time is over.
bool is_protected(const Cycle& cycle, Pool& pool, const GangState& gang,
                  Milliseconds Project::* minimum);

/// The maximum number of eviction trials that one plan makes in each pool; it limits the plan's run
/// time. A failed trial is not repeated until something changes, so the next plan continues where
/// this one stopped. Consolidation, reclaim and preemption use the trials in this order. Each
/// action may make at least kLeastTrialsOfAnAction trials, so that frequent events cannot starve it.
inline constexpr int kTrialsInAPlan = 40;
inline constexpr int kLeastTrialsOfAnAction = 8;

/// Starts gangs whose promised placement is free now.
void keep_promises(Cycle& cycle, Pool& pool);
/// Gives free resources to gangs in serve order, as long as a gang fits. With `may_defer`, gangs
/// that prefer a pool that was not allocated yet wait for a second round.
void allocate(Cycle& cycle, Pool& pool, bool may_defer);
// The next three set Pool::unfinished if they stop because no trials are left.

/// Moves running gangs to other nodes if a waiting gang then fits.
void consolidate(Cycle& cycle, Pool& pool);
/// Evicts gangs of projects over their fair share for projects below theirs.
void reclaim(Cycle& cycle, Pool& pool);
/// Evicts gangs for more important gangs of the same project.
void preempt(Cycle& cycle, Pool& pool);
/// Evicts gangs that have run below their minimum for too long.
void evict_stale(Cycle& cycle, Pool& pool);
/// Reports to each waiting gang why it waits, if the reason changed.
void report_waits(Cycle& cycle, Pool& pool);

/// Starts `tasks` of the gang on `bookings`. REQUIRES: the nodes' books hold these bookings.
void start(Cycle& cycle, GangState& gang, Pool& pool, const std::vector<int>& tasks,
           const std::vector<Booking>& bookings);

/// Sets the constraint of a class, and whether it changed.
void set_verdict(Pool& pool, WaitClass& waiting, Constraint constraint);

/// The time until which no gang is evicted for this new gang; nothing if that time is over.
std::optional<Time> forbears_until(const Options& options, const GangState& gang, Time now);

/// Whether a gang of the class's own project runs that is less important and may be evicted.
bool has_lesser_running(const Pool& pool, const WaitClass& waiting);

/// The first gang of a class that may evict others now; nullptr if all cool down.
GangState* first_that_may_evict(Cycle& cycle, Pool& pool, const WaitClass& waiting);

}  // namespace muster::schedule
