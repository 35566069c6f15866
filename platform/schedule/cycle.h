// One cycle of the scheduler: the actions that make a plan, in the order in which they run on a
// pool, and the data that they share.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/pool.h"
#include "schedule/scheduler.h"

namespace muster::schedule {

struct Cycle {
  const Options& options;
  const std::unordered_map<std::string, Project>& projects;  ///< by name
  Time now;
  uint64_t number;  ///< of the plan, from 1
  Plan plan;
  int trials_left;  ///< eviction trials left in this plan; the next plan continues
};

/// Whether the gang has run for less than the `minimum` of its project. If so, the pool is
/// scheduled again when that time is over.
bool is_protected(const Cycle& cycle, Pool& pool, const GangState& gang,
                  Milliseconds Project::* minimum);

/// The maximum number of eviction trials that one plan makes in each pool; it limits the plan's run
/// time. A failed trial is not repeated until something changes, so the next plan continues where
/// this one stopped.
inline constexpr int kTrialsInAPlan = 40;

/// Starts gangs whose promised placement is free now.
void keep_promises(Cycle& cycle, Pool& pool);
/// Gives free resources to gangs in serve order, as long as a gang fits. With `may_defer`, gangs
/// that prefer a pool that was not allocated yet wait for a second round.
void allocate(Cycle& cycle, Pool& pool, bool may_defer);
/// Moves running gangs to other nodes if a waiting gang then fits.
void consolidate(Cycle& cycle, Pool& pool);
/// Evicts gangs of projects over their fair share for projects below theirs.
void reclaim(Cycle& cycle, Pool& pool);
/// Evicts gangs for more important gangs of the same project.
void preempt(Cycle& cycle, Pool& pool);
/// Evicts gangs that have run below their minimum for too long.
void evict_stale(Cycle& cycle, Pool& pool);
/// Reports to each waiting gang why it waits, if the reason changed.
void tell_waits(Cycle& cycle, Pool& pool);

/// Starts `tasks` of the gang on `bookings`. REQUIRES: the nodes' books hold these bookings.
void start(Cycle& cycle, GangState& gang, Pool& pool, const std::vector<int>& tasks,
           const std::vector<Booking>& bookings);

/// Sets the constraint of a class, and whether it changed.
void set_verdict(WaitClass& waiting, Constraint constraint);

/// The time until which no gang is evicted for this new gang; nothing if that time is over.
std::optional<Time> forbears_until(const Options& options, const GangState& gang, Time now);

/// The first gang of a class that may evict others now; nullptr if all cool down.
GangState* first_that_may_evict(Cycle& cycle, Pool& pool, const WaitClass& waiting);

/// The order in which waiting gangs are served. Each level of the project tree is a set sorted by
/// order key; within a project, classes are sorted by priority, elastic state and age.
///
/// Made for one action of one cycle. Serving or dropping a class costs the depth of the tree.
class ServeOrder {
 public:
  ServeOrder(Pool& pool, Policy policy);

  /// Adds a class, or updates it after gangs joined or left it.
  void add(WaitClass& waiting);
  /// The class whose head is served next; nullptr if none is left.
  WaitClass* top();
  /// Call after the books of `leaf` have changed.
  void update(ProjectIndex leaf) { unsettled_.push_back(leaf); }
  /// Removes a class for the rest of this action.
  void drop(WaitClass& waiting);
  /// The gang of the class that is served next: the first one that was not skipped.
  GangState* head(const WaitClass& waiting) const;
  /// Skips the head: the next gang of the class becomes the head.
  void skip_head(WaitClass& waiting);

 private:
  struct Head {
    int negative_priority = 0;
    ElasticState state = ElasticState::kBelowMinimum;
    uint64_t sequence = 0;
    uint64_t number = 0;
    WaitClass* waiting = nullptr;

    bool operator<(const Head& other) const {
      return std::tie(negative_priority, state, sequence, number) <
             std::tie(other.negative_priority, other.state, other.sequence, other.number);
    }
  };
  struct Place {
    std::set<Head> heads;  ///< of the classes of a leaf
    std::set<std::pair<OrderKey, ProjectIndex>> children;
    bool entered = false;
    OrderKey key;
  };

  Place& at(ProjectIndex project) { return places_[static_cast<size_t>(int64_t{project} + 1)]; }
  Head head_of(WaitClass& waiting, const GangState& gang) const;
  void enter_at(WaitClass& waiting, Waiters::const_iterator gang);
  const Head* first_below(ProjectIndex project);
  void enter(ProjectIndex project);
  void settle();

  Pool& pool_;
  Policy policy_;
  std::vector<Place> places_;  ///< by project; the root is first
  struct Entered {
    Head head;
    Waiters::const_iterator gang;
  };
  std::unordered_map<const WaitClass*, Entered> entered_;  ///< for looking up only
  std::vector<ProjectIndex> unsettled_;
};

}  // namespace muster::schedule
