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
  /// The same, without a look at the gangs of the class.
  void add(const QueuedClass& queued);
  using EnterClasses = std::function<void(ProjectIndex)>;
  /// Adds all projects of a ranking, with the bounds under which they stand in it. When the bound of
  /// a project is first, `enter_classes` is called once, and adds those classes of the project that
  /// are to be served. `least_charge`: no class of the pool is charged less. REQUIRES: nothing was
  /// added; the ranking stays as it is for as long as this order exists.
  void add_ranked(const ProjectRanking& ranking, const Amounts& least_charge,
                  EnterClasses enter_classes);
  /// Adds all classes of the pool. REQUIRES: no other class was added.
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
    bool is_later = false;   ///< its classes are still to be entered
    bool is_taken = false;   ///< its place in the ranking does not count any more
    size_t next_ranked = 0;  ///< of the children in the ranking, all before this one are taken
  };

  Place& at(ProjectIndex project) { return places_[static_cast<size_t>(project)]; }
  void make_places();
  void take(ProjectIndex project);
  ProjectIndex first_ranked(ProjectIndex parent);
  ProjectIndex first(ProjectIndex parent);
  ProjectIndex first_below(ProjectIndex project);
  const Amounts& bound_of(ProjectIndex project, ProjectIndex leaf) const;
  bool is_in(const Head& head) const;
  Head head_of(WaitClass& waiting, const GangState& gang) const;
  void enter_at(WaitClass& waiting, Waiters::const_iterator gang);
  void push(ProjectIndex leaf, const Head& head);
  const Head* first_of(ProjectIndex leaf);
  void enter(ProjectIndex project);
  void settle();

  Pool& pool_;
  Policy policy_;
  uint64_t number_;                                ///< of this order, as in WaitClass::served
  std::vector<Place> places_;                      ///< by project
  ProjectHeaps<HeapOrder::kLeastFirst> projects_;  ///< those that stand in no ranking
  std::vector<ProjectIndex> unsettled_;
  std::vector<ProjectIndex> above_;  ///< kept for its memory
  EnterClasses enter_classes_;
  const ProjectRanking* ranking_ = nullptr;  ///< of projects that were not looked at
  size_t next_ranked_ = 0;                   ///< as Place::next_ranked, for the top of the tree
  Amounts least_charge_ = kBoundless;        ///< of all projects added with a bound
};

}  // namespace muster::schedule
