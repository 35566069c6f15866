// The order in which waiting gangs are served: from the top of the tree of projects down, the child
// whose key is first; within a project, the classes by priority, elastic state and age.
//
// Made for one action of one cycle. At most one exists for a pool at a time, because each class
// holds its own place in the order. Serving or dropping a class costs the depth of the tree times
// the logarithm of the number of siblings. Not thread-safe.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "schedule/pool.h"
#include "schedule/project_heaps.h"
#include "schedule/scheduler.h"

namespace muster::schedule {

class ServeOrder {
 public:
  ServeOrder(Pool& pool, Policy policy);

  /// Adds a class, or updates it after gangs joined or left it.
  void add(WaitClass& waiting);
  /// Adds `leaf` with a bound. When that is first, `enter_classes` is called once, and adds those
  /// classes of the project that are to be served. REQUIRES: Policy::kFair; the same function for
  /// all projects.
  void add_later(ProjectIndex leaf, const std::function<void(ProjectIndex)>& enter_classes);
  /// Adds all classes of the pool.
  void add_all();
  /// Whether the classes of `leaf` are still to be entered.
  bool is_later(ProjectIndex leaf) const;
  /// Removes all projects whose classes are still to be entered.
  void drop_later();
  /// The class whose head is served next; nullptr if none is left.
  WaitClass* top();
  /// Call after the books of `leaf` have changed.
  void update(ProjectIndex leaf);
  /// Removes a class for the rest of this action.
  void drop(WaitClass& waiting);
  /// The gang of the class that is served next: the first one that was not skipped. REQUIRES: the
  /// class was returned by top().
  GangState* head(const WaitClass& waiting) const { return *waiting.served.gang; }
  /// Skips the head: the next gang of the class becomes the head.
  void skip_head(WaitClass& waiting);

 private:
  struct Head {
    int negative_priority = 0;
    ElasticState state = ElasticState::kBelowMinimum;
    uint64_t sequence = 0;
    uint64_t number = 0;
    WaitClass* waiting = nullptr;

    /// For std::push_heap(), which keeps the greatest on top.
    bool operator<(const Head& other) const {
      return std::tie(other.negative_priority, other.state, other.sequence, other.number) <
             std::tie(negative_priority, state, sequence, number);
    }
  };
  struct Place {
    /// A heap of the classes of a leaf. Dropped classes stay in it until they come to the top.
    std::vector<Head> heads;
    bool is_unsettled = false;
    bool is_later = false;  ///< its classes are still to be entered
  };

  Place& at(ProjectIndex project) { return places_[static_cast<size_t>(project)]; }
  bool is_in(const Head& head) const;
  Head head_of(WaitClass& waiting, const GangState& gang) const;
  void enter_at(WaitClass& waiting, Waiters::const_iterator gang);
  const Head* first_of(ProjectIndex leaf);
  void enter(ProjectIndex project);
  void settle();

  Pool& pool_;
  Policy policy_;
  uint64_t number_;            ///< of this order, as in WaitClass::served
  std::vector<Place> places_;  ///< by project
  ProjectHeaps<HeapOrder::kLeastFirst> projects_;
  std::vector<ProjectIndex> unsettled_;
  std::vector<ProjectIndex> above_;  ///< kept for its memory
  std::function<void(ProjectIndex)> enter_classes_;
  Amounts least_charge_ = kBoundless;  ///< of all projects added with a bound
};

}  // namespace muster::schedule
