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

#include "schedule/pool.h"

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

}  // namespace muster::schedule
