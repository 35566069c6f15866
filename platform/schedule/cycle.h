// What the actions of one plan() share, and the actions themselves, in the order in which a cycle
// runs them on a pool.
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
  int trials_left;  ///< of making room by eviction; the rest goes on in the next plan
};

/// Whether the gang has run for less than its project protects it for, by `minimum`; then the pool
/// is looked at again when that is over.
bool is_protected(const Cycle& cycle, Pool& pool, const GangState& gang,
                  Milliseconds Project::* minimum);

/// How many trials of an eviction one plan makes in each pool: a bound of its time. What failed is
/// not tried again before something changes, so the next plan goes on where this one stopped.
inline constexpr int kTrialsInAPlan = 40;

/// Whose promised room is free now starts.
void keep_promises(Cycle& cycle, Pool& pool);
/// Free room to whoever is next, as long as anybody fits. Where `may_defer`, gangs that would
/// rather run in a pool that has not had its turn are left for a second round.
void allocate(Cycle& cycle, Pool& pool, bool may_defer);
/// Moves others together where that makes room for one that waits.
void consolidate(Cycle& cycle, Pool& pool);
/// Evicts gangs of projects that hold more than they may for those that hold less.
void reclaim(Cycle& cycle, Pool& pool);
/// Evicts less important gangs of the same project.
void preempt(Cycle& cycle, Pool& pool);
/// Evicts what has run below its minimum for too long.
void evict_stale(Cycle& cycle, Pool& pool);
/// Tells those that wait why, where that is new.
void tell_waits(Cycle& cycle, Pool& pool);

/// Books hold the room of `bookings`; `tasks` of the gang start there now.
void start(Cycle& cycle, GangState& gang, Pool& pool, const std::vector<int>& tasks,
           const std::vector<Booking>& bookings);

/// The verdict on those that wait in a class, and whether it is another than before.
void set_verdict(WaitClass& waiting, Constraint constraint);

/// Until when nobody is evicted for this gang, because it has only just come; nothing: now is
/// later.
std::optional<Time> forbears_until(const Options& options, const GangState& gang, Time now);

/// The first of a class that may evict others at this time; nullptr if they all cool down.
GangState* first_that_may_evict(Cycle& cycle, Pool& pool, const WaitClass& waiting);

// Who is served next: the tree of projects by their order keys, a sorted set a level; inside a
// project its classes of waiting gangs by priority, elastic state and age.
//
// Made for one action of one cycle. Serving or dropping one class costs the depth of the tree.

class ServeOrder {
 public:
  ServeOrder(Pool& pool, Policy policy);

  /// Takes part from now on; again, after gangs joined or left it.
  void add(WaitClass& waiting);
  /// The class whose head is next; nullptr when there is none.
  WaitClass* top();
  /// The books of `leaf` have changed.
  void update(ProjectIndex leaf) { unsettled_.push_back(leaf); }
  /// Its gangs are done with, for this action.
  void drop(WaitClass& waiting);
  /// The gang that top() stands for now: its first, but where the first were skipped.
  GangState* head(const WaitClass& waiting) const;
  /// Its head is done with: the one behind it is next.
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
  std::vector<Place> places_;  ///< by project, the root first
  struct Entered {
    Head head;
    Waiters::const_iterator gang;
  };
  std::unordered_map<const WaitClass*, Entered> entered_;  ///< for looking up only
  std::vector<ProjectIndex> unsettled_;
};

}  // namespace muster::schedule
