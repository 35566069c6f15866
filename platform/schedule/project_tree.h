// Trees of projects as they are given: by the names of their parents, faults included.
#pragma once

#include <vector>

#include "schedule/model.h"

namespace muster::schedule {

/// By project: the index of its parent; -1 where it has none, or names one that is not there. Of
/// several projects of one name, the first is meant.
std::vector<int> parents_of(const std::vector<Project>& projects);

/// The cycles in `parents`, each from its lowest index along the parents; those with the lowest
/// index first.
std::vector<std::vector<int>> cycles_of(const std::vector<int>& parents);

}  // namespace muster::schedule
