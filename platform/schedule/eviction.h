// Eviction: the order of victims, making room for a gang by a trial, and the evictions of each
// action.
//
// The order of victims: the project that is served last comes first; in a project, the gangs with
// the lowest priority, of equal ones the youngest; for one priority, first single tasks beyond the
// minimum, then whole gangs. Evictions of the current trial count.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "schedule/explain.h"
#include "schedule/pool.h"
#include "schedule/project_heaps.h"
#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

/// Tasks that are evicted together.
struct EvictionUnit {
  GangState* gang = nullptr;
  ProjectIndex leaf = kNoProject;
  std::vector<int> tasks;
  bool core = false;  ///< all remaining tasks of the gang
  Amounts amounts;    ///< of the tasks, in the ledger
};

EvictionUnit unit_of(GangState& gang, const Pool& pool, std::vector<int> tasks, bool core);

class VictimOrder {
 public:
  /// Which gangs may be evicted. An empty filter: all.
  using Filter = std::function<bool(const GangState&)>;

  VictimOrder(Pool& pool, Filter may_be_victim);

  void add(ProjectIndex leaf);
  /// As add(), but the project's gangs are looked at only once it may be last. It is worth that if
  /// many projects are added.
  void add_later(ProjectIndex leaf);
  /// The next unit. REQUIRES: the unit returned before was evicted, or its project dropped.
  std::optional<EvictionUnit> next();
  /// Returns no more units of this project.
  void drop(ProjectIndex leaf);

 private:
  struct Leaf {
    std::set<VictimKey>::const_iterator extra;
    std::set<VictimKey>::const_iterator core;
    std::vector<int> extras_left;  ///< of the gang before `extra`, the first last
    GangState* extras_of = nullptr;
    std::map<uint64_t, std::set<int>> taken;  ///< extras taken, by gang
    std::optional<EvictionUnit> head;
  };
  void advance(ProjectIndex index, Leaf& leaf);
  bool take_extra(Leaf& leaf);
  bool may_be_victim(const GangState& gang) const {
    return !may_be_victim_ || may_be_victim_(gang);
  }
  bool is_later(ProjectIndex leaf) const;
  Amounts least_lost(ProjectIndex leaf) const;
  void enter(ProjectIndex project);
  void update(ProjectIndex leaf);

  Pool& pool_;
  Filter may_be_victim_;
  std::unordered_map<ProjectIndex, Leaf> leaves_;  ///< for looking up only
  std::vector<bool> later_;                        ///< projects whose gangs were not looked at
  ProjectHeaps<HeapOrder::kGreatestFirst> projects_;
  ProjectIndex last_ = kNoProject;  ///< of the unit returned last
};

// Making room for one gang: a trial evicts units until the gang fits. Then it restores units that
// were evicted in vain, and looks for another place for every task of the remaining units. A task
// ends only if no place was found. The decision is made when the whole trial has succeeded.

/// The leaving tasks of one gang. The remaining and moved tasks of the gang are none, or at least
/// its minimum.
struct EvictedTasks {
  GangState* gang = nullptr;
  std::vector<int> tasks;         ///< ascending
  std::vector<int> moved;         ///< a subset of `tasks`, ascending: restart at once
  std::vector<Booking> moved_to;  ///< by entry of `moved`

  bool moves_whole() const { return moved.size() == tasks.size(); }
};

struct Decision {
  std::vector<Booking> bookings;  ///< of the gang that starts
  std::vector<EvictedTasks> evicted;
};

class VictimSelection {
 public:
  /// `must_be_fair`: the result must satisfy Ledger::is_fair_between().
  VictimSelection(Trial& trial, const Options& options, Pool& pool, const PlacementRequest& request,
                  bool must_be_fair);

  /// Whether the gang fits without evictions, when the leaving tasks have ended.
  bool fits_already();
  /// Whether the nodes have free in total what the gang requests, without what is reserved for other
  /// gangs. If not, it cannot start before a task ends.
  bool has_free_in_all();

  /// `may_end`: the unit may end if it does not fit on other nodes.
  void evict(EvictionUnit unit, bool may_end);
  size_t evicted() const { return victims_.size(); }
  /// Whether the last eviction can have changed the result.
  bool is_worth_a_try() const;
  /// The decision if the evictions so far suffice; the trial then contains it. Otherwise the trial
  /// is unchanged.
  std::optional<Decision> conclude();
  /// As conclude(), but every unit is needed and moves in the order of eviction: each unit takes
  /// the place of the next one.
  std::optional<Decision> conclude_chain();

 private:
  struct Victim {
    EvictionUnit unit;
    bool may_end = true;
    bool evicted = true;
  };

  /// Evicted units of one gang together.
  struct Leaving {
    EvictionUnit unit;
    bool may_end = true;
  };

  std::vector<Booking> held_by(const EvictionUnit& unit) const;
  bool is_allowed_after_ends();
  bool place();
  void lift_kept();
  void put_back_kept();
  /// `stuck` is set to a gang that fits nowhere else and may not end.
  std::optional<Decision> try_to_conclude(const std::vector<const GangState*>& unmovable,
                                          const GangState*& stuck);
  std::optional<Decision> decide(std::vector<EvictedTasks> evicted);
  bool give_back_unneeded(const std::vector<const GangState*>& unmovable);
  bool is_core_evicted(const GangState& gang) const;
  bool give_back(Victim& victim);
  bool is_fair(const std::vector<EvictedTasks>& evicted) const;
  bool could_take_back(const EvictedTasks& one, ProjectIndex victim) const;
  bool leaves_limits() const;
  bool is_on_the_nodes(const EvictionUnit& unit) const;
  std::vector<Leaving> leaving_gangs() const;
  std::optional<std::vector<EvictedTasks>> settle(const std::vector<Leaving>& leaving,
                                                  const GangState*& stuck);
  EvictedTasks settle_gang(const EvictionUnit& unit);
  void keep_in_place(EvictedTasks& evicted);
  void move(EvictedTasks& evicted);
  bool move_tasks(EvictedTasks& evicted, const std::vector<int>& tasks);

  Trial& trial_;
  const Options& options_;
  Pool& pool_;
  const PlacementRequest& asking_;
  bool must_be_fair_;
  bool refused_by_capacity_;
  std::vector<const Reservation*> limits_;  ///< of these reservations have to suffice
  std::vector<Claim> claims_;
  std::vector<Booking> lifted_;    ///< of reservations that this gang precedes
  std::vector<Victim> victims_;    ///< in the order of their eviction
  std::vector<Booking> bookings_;  ///< of the gang, once it is placed
};

/// The evictions that let a gang start, and its placement; the trial then contains them. Nothing if
/// this action cannot help the gang.
std::optional<Decision> find_to_move(const Cycle& cycle, Pool& pool, Trial& trial,
                                     const PlacementRequest& request);
std::optional<Decision> find_to_reclaim(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const PlacementRequest& request);
std::optional<Decision> find_to_preempt(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const PlacementRequest& request);

/// The evictions as reported, with the amounts before the decision.
std::vector<Eviction> evictions_of(const Pool& pool, Trial& trial, const PlacementRequest& request,
                                   const Decision& decision, EvictionCause cause,
                                   Tense tense = Tense::kPast);

/// Commits the trial: the evicted tasks leave, and the gang and the moved tasks get promises.
void carry_out(Cycle& cycle, Pool& pool, Trial& trial, const PlacementRequest& request,
               const Decision& decision, EvictionCause cause);

/// Evicts all running tasks of a stale gang.
void evict_rest(Cycle& cycle, GangState& gang);

}  // namespace muster::schedule
