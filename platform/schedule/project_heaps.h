// The children of each project in the order of their keys: a binary heap for each project of the
// tree, from which the first child is read at once. A key that changes moves its child in a time that
// grows with the logarithm of the number of siblings, and a new child mostly stays where it is
// appended.
//
// Equal keys are ordered by the index of the project, so that the order depends on no history.
//
// Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "schedule/ledger.h"

namespace muster::schedule {

enum class HeapOrder { kLeastFirst, kGreatestFirst };

template <HeapOrder kOrder>
class ProjectHeaps {
 public:
  /// For projects with an index below `projects`; set() accepts later projects, too.
  explicit ProjectHeaps(size_t projects) : places_(projects + 1) {}

  /// Enters the project among the children of `parent`, or changes its key.
  void set(ProjectIndex project, ProjectIndex parent, const OrderKey& key) {
    if (index_of(project) >= places_.size()) places_.resize(index_of(project) + 1);
    Place& place = at(project);
    place.key = key;
    std::vector<ProjectIndex>& children = at(parent).children;
    if (place.position < 0) {
      place.position = static_cast<int>(children.size());
      children.push_back(project);
      rise(children, place.position);
      return;
    }
    const int position = place.position;
    rise(children, position);
    sink(children, place.position);
  }

  /// Removes the project from the children of `parent`, if it is among them.
  void erase(ProjectIndex project, ProjectIndex parent) {
    if (index_of(project) >= places_.size() || at(project).position < 0) return;
    std::vector<ProjectIndex>& children = at(parent).children;
    const int position = std::exchange(at(project).position, -1);
    const ProjectIndex last = children.back();
    children.pop_back();
    if (last == project) return;
    children[static_cast<size_t>(position)] = last;
    at(last).position = position;
    rise(children, position);
    sink(children, at(last).position);
  }

  /// REQUIRES: the project is entered.
  const OrderKey& key(ProjectIndex project) const { return at(project).key; }

  /// The first child; kNoProject: it has none.
  ProjectIndex first(ProjectIndex parent) const {
    if (index_of(parent) >= places_.size()) return kNoProject;
    const std::vector<ProjectIndex>& children = at(parent).children;
    return children.empty() ? kNoProject : children.front();
  }

  /// The first child of the first child, and so on, down to a project without children.
  ProjectIndex first_below(ProjectIndex project) const {
    for (ProjectIndex next = first(project); next != kNoProject; next = first(project)) {
      project = next;
    }
    return project;
  }

 private:
  struct Place {
    std::vector<ProjectIndex> children;  ///< a heap
    int position = -1;                   ///< among its siblings; -1: not entered
    OrderKey key;
  };

  static size_t index_of(ProjectIndex project) { return static_cast<size_t>(int64_t{project} + 1); }
  Place& at(ProjectIndex project) { return places_[index_of(project)]; }
  const Place& at(ProjectIndex project) const { return places_[index_of(project)]; }

  bool comes_before(ProjectIndex left, ProjectIndex right) const {
    if constexpr (kOrder == HeapOrder::kGreatestFirst) std::swap(left, right);
    const auto order = at(left).key <=> at(right).key;
    return order == 0 ? left < right : order < 0;
  }

  void put(std::vector<ProjectIndex>& children, int position, ProjectIndex project) {
    children[static_cast<size_t>(position)] = project;
    at(project).position = position;
  }

  void rise(std::vector<ProjectIndex>& children, int position) {
    const ProjectIndex project = children[static_cast<size_t>(position)];
    while (position > 0) {
      const int above = (position - 1) / 2;
      const ProjectIndex other = children[static_cast<size_t>(above)];
      if (!comes_before(project, other)) break;
      put(children, position, other);
      position = above;
    }
    put(children, position, project);
  }

  void sink(std::vector<ProjectIndex>& children, int position) {
    const auto size = static_cast<int>(children.size());
    const ProjectIndex project = children[static_cast<size_t>(position)];
    while (2 * position + 1 < size) {
      int below = 2 * position + 1;
      if (below + 1 < size && comes_before(children[static_cast<size_t>(below) + 1],
                                           children[static_cast<size_t>(below)])) {
        ++below;
      }
      const ProjectIndex other = children[static_cast<size_t>(below)];
      if (!comes_before(other, project)) break;
      put(children, position, other);
      position = below;
    }
    put(children, position, project);
  }

  std::vector<Place> places_;  ///< by project; the top of the tree is first
};

}  // namespace muster::schedule
