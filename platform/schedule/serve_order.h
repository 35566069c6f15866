// Who is served next: the tree of projects by their order keys, a sorted set a level; inside a
// project its classes of waiting gangs by priority, elastic state and age.
//
// Made for one action of one cycle. Serving or dropping one class costs the depth of the tree.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "schedule/pool.h"
#include "schedule/scheduler.h"

namespace muster::schedule {

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
