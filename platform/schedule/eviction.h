// Who is evicted first: the least deserving project, in the order in which projects are served
// turned round; inside it the least important gangs, of equals the youngest; and of a priority
// first the tasks beyond the minimum, one by one, before any gang as a whole.
//
// Looks at the books as they stand: what a trial has evicted already counts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "schedule/explain.h"
#include "schedule/pool.h"
#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

/// What is evicted together.
struct Unit {
  GangState* gang = nullptr;
  ProjectIndex leaf = kNoProject;
  std::vector<int> tasks;
  bool core = false;  ///< all that is left of the gang
  Amounts amounts;    ///< of the tasks, in the books
};

Unit unit_of(GangState& gang, const Pool& pool, std::vector<int> tasks, bool core);

class VictimOrder {
 public:
  using Filter = std::function<bool(const GangState&)>;

  VictimOrder(Pool& pool, Filter may_be_victim);

  void add(ProjectIndex leaf);
  /// The next unit; what was returned before has been evicted, or its project dropped.
  std::optional<Unit> next();
  /// Nothing more of this project.
  void drop(ProjectIndex leaf);

 private:
  struct Leaf {
    std::set<VictimKey>::const_iterator extra;
    std::set<VictimKey>::const_iterator core;
    std::vector<int> extras_left;  ///< of the gang before `extra`, the first last
    GangState* extras_of = nullptr;
    std::map<uint64_t, std::set<int>> taken;  ///< extras taken, by gang
    std::optional<Unit> head;
  };
  struct Place {
    std::set<std::pair<OrderKey, ProjectIndex>> children;
    bool entered = false;
    OrderKey key;
  };

  void advance(ProjectIndex index, Leaf& leaf);
  bool take_extra(Leaf& leaf);
  const Unit* last_below(ProjectIndex project);
  void enter(ProjectIndex project);
  void update(ProjectIndex leaf);

  Pool& pool_;
  Filter may_be_victim_;
  std::map<ProjectIndex, Leaf> leaves_;
  std::map<ProjectIndex, Place> places_;  ///< kNoProject: the top
  ProjectIndex last_ = kNoProject;        ///< of the unit returned last
};

// Making room for one gang by evicting others: a trial that evicts units one after the other until
// the gang has a place. Then the trial gives back the units that were evicted in vain, and looks
// for another place for every task of the others. A task ends only where the trial has no place for
// it. Nothing is decided before all of it has been tried out.

/// The tasks of one gang that leave. What is left of the gang, with the tasks that move, is nothing
/// or at least its minimum.
struct Evicted {
  GangState* gang = nullptr;
  std::vector<int> tasks;         ///< ascending
  std::vector<int> moved;         ///< of these, ascending: start again at once
  std::vector<Booking> moved_to;  ///< by entry of `moved`

  bool moves_whole() const { return moved.size() == tasks.size(); }
};

struct Decision {
  std::vector<Booking> bookings;  ///< of the gang that the room is for
  std::vector<Evicted> evicted;
};

class MakeRoom {
 public:
  /// `must_be_fair`: what the reclaimer then holds is held against its siblings.
  MakeRoom(Trial& trial, const Options& options, Pool& pool, const Asking& asking,
           bool must_be_fair);

  /// It fits as soon as those who are leaving anyway have left: nobody needs to be evicted.
  bool fits_already();

  /// `may_end`: it need not find another place.
  void evict(Unit unit, bool may_end);
  size_t evicted() const { return victims_.size(); }
  /// Whether the last eviction can have made a difference.
  bool is_worth_a_try() const;
  /// The decision, if what was evicted so far is enough. The trial then stands as decided;
  /// otherwise as before.
  std::optional<Decision> conclude();
  /// As conclude(), where every evicted unit is needed, and moves in the order of its eviction: for
  /// a unit that leaves its place to the one before.
  std::optional<Decision> conclude_chain();

 private:
  struct Victim {
    Unit unit;
    bool may_end = true;
    bool evicted = true;
  };

  /// Evicted units of one gang together.
  struct Leaving {
    Unit unit;
    bool may_end = true;
  };

  std::vector<Booking> held_by(const Unit& unit) const;
  bool place();
  void lift_kept();
  void put_back_kept();
  /// `stuck` is set to the gang that has neither another place nor leave to end.
  std::optional<Decision> try_to_conclude(const std::vector<const GangState*>& unmovable,
                                          const GangState*& stuck);
  std::optional<Decision> decide(std::vector<Evicted> evicted);
  bool give_back_unneeded(const std::vector<const GangState*>& unmovable);
  bool is_core_evicted(const GangState& gang) const;
  bool give_back(Victim& victim);
  bool is_fair(const std::vector<Evicted>& evicted) const;
  bool is_on_the_nodes(const Unit& unit) const;
  std::vector<Leaving> leaving_gangs() const;
  std::optional<std::vector<Evicted>> settle(const std::vector<Leaving>& leaving,
                                             const GangState*& stuck);
  Evicted settle_gang(const Unit& unit);
  void keep_in_place(Evicted& evicted);
  void move(Evicted& evicted);
  bool move_tasks(Evicted& evicted, const std::vector<int>& tasks);

  Trial& trial_;
  const Options& options_;
  Pool& pool_;
  const Asking& asking_;
  bool must_be_fair_;
  bool refused_by_capacity_;
  std::vector<Claim> claims_;
  std::vector<Booking> lifted_;    ///< of rooms kept for others that have to stand back
  std::vector<Victim> victims_;    ///< in the order of their eviction
  std::vector<Booking> bookings_;  ///< of the gang, once it is placed
};

// Finding whom to evict for a gang, each action by its own rule, and carrying it out.

/// Whom to evict for the gang, and where it goes then; the trial stands so. Nothing where this
/// action cannot or may not help it.
std::optional<Decision> find_to_move(const Cycle& cycle, Pool& pool, Trial& trial,
                                     const Asking& asking);
std::optional<Decision> find_to_reclaim(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking);
std::optional<Decision> find_to_preempt(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking);

/// As they are announced, with the numbers as they were before anything was decided.
std::vector<Eviction> evictions_of(const Pool& pool, Trial& trial, const Asking& asking,
                                   const Decision& decision, EvictionCause cause,
                                   Tense tense = Tense::kPast);

/// The trial stands as decided, and is committed: the evicted tasks are leaving, and the gang has
/// the promise of its room; so have those that move.
void carry_out(Cycle& cycle, Pool& pool, Trial& trial, const Asking& asking,
               const Decision& decision, EvictionCause cause);

/// All that runs of a stale gang goes, for nobody in particular.
void evict_rest(Cycle& cycle, GangState& gang);

}  // namespace muster::schedule
