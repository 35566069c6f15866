// The projects of a pool in the order in which they are served, kept from plan to plan. Among
// thousands of projects an event changes a few: only these are put in order again.
//
// A project stands in a ranking with a bound: the key that it has if its first gang is charged the
// least of all that it ever had, or what its first class is charged. The gang that an action serves
// first is often another one, so a ServeOrder looks at a project only once its bound is first, and
// never at most of them.
//
// The invariant: after update(), each ranking equals one that is built from the ledger and the
// queues of the pool. It holds because the ledger notes each project whose key may have changed,
// and gang_books.cc each project whose classes have. is_stale() checks it.
//
// Not thread-safe.
#pragma once

#include <vector>

#include "schedule/ledger.h"

namespace muster::schedule {

struct Pool;

/// Projects that are entered, the first one first: for each project of the tree, its children.
class ProjectRanking {
 public:
  /// The entered children of `parent`, ordered by key and then by index. Valid until a change.
  const std::vector<ProjectIndex>& children(ProjectIndex parent) const;
  /// Whether the project was entered by enter_leaf().
  bool has_leaf(ProjectIndex project) const;
  /// REQUIRES: the project is among the children() of another.
  const OrderKey& key(ProjectIndex project) const { return places_[index_of(project)].key; }

  /// Enters a project of which gangs wait, or changes its key. `least` gives the keys of the
  /// projects above it that were not entered.
  void enter_leaf(const Ledger& ledger, ProjectIndex leaf, const OrderKey& key,
                  const Amounts& least);
  void erase_leaf(ProjectIndex leaf);
  /// Changes the key of a project that is entered because of the projects below it.
  void change(ProjectIndex project, const OrderKey& key);

  /// Forgets everything. Then: append() for each leaf, and sort() once, instead of enter_leaf().
  void clear(size_t projects);
  void append(const Ledger& ledger, ProjectIndex leaf, const OrderKey& key, const Amounts& least);
  void sort();

  bool operator==(const ProjectRanking&) const = default;

 private:
  struct Place {
    OrderKey key;
    ProjectIndex parent = kNoProject;
    bool is_entered = false;
    bool is_leaf = false;
    std::vector<ProjectIndex> children;

    bool operator==(const Place&) const = default;
  };
  static size_t index_of(ProjectIndex project) { return static_cast<size_t>(int64_t{project} + 1); }
  Place& at(ProjectIndex project) { return places_[index_of(project)]; }
  std::vector<ProjectIndex>::iterator position_of(std::vector<ProjectIndex>& children,
                                                  ProjectIndex project, const OrderKey& key);
  void insert(ProjectIndex project, ProjectIndex parent, const OrderKey& key);
  void take_out(ProjectIndex project);

  std::vector<Place> places_;  ///< by project; the top of the tree is first
};

/// The rankings of one pool.
class ProjectRankings {
 public:
  /// Brings all up to date. No ServeOrder may exist that reads one of them.
  void update(Pool& pool);

  /// Projects in which gangs wait.
  const ProjectRanking& waiting() const { return waiting_; }
  /// The same, under what the first class of each is charged: the order in which all gangs wait.
  const ProjectRanking& by_first_class() const { return by_first_class_; }
  /// Those of the waiting projects whose least request may reclaim.
  const ProjectRanking& reclaiming() const { return reclaiming_; }
  /// No gang of the pool is charged less. Projects with subprojects stand under this charge.
  const Amounts& least_charge() const { return least_charge_; }

  /// Whether update() has missed a change. For tests; costs as much as an order of all projects.
  bool is_stale(Pool& pool);

 private:
  void update(Pool& pool, ProjectIndex project);
  void build(Pool& pool);

  void rank_by_first_class(Pool& pool, ProjectIndex project);

  ProjectRanking waiting_;
  ProjectRanking by_first_class_;
  ProjectRanking reclaiming_;
  Amounts least_charge_ = kBoundless;
};

}  // namespace muster::schedule
