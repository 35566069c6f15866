#include "schedule/project_tree.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace muster::schedule {

std::vector<int> parents_of(const std::vector<Project>& projects) {
  std::unordered_map<std::string_view, int> by_name;
  for (size_t i = 0; i < projects.size(); ++i) by_name.emplace(projects[i].name, i);

  std::vector<int> parents;
  for (const Project& project : projects) {
    const auto parent = project.parent.empty() ? by_name.end() : by_name.find(project.parent);
    parents.push_back(parent == by_name.end() ? -1 : parent->second);
  }
  return parents;
}

std::vector<std::vector<int>> cycles_of(const std::vector<int>& parents) {
  constexpr int kNew = -1;
  std::vector<int> seen_from(parents.size(), kNew);
  std::vector<std::vector<int>> cycles;
  for (int start = 0; start < static_cast<int>(parents.size()); ++start) {
    int at = start;
    while (at >= 0 && seen_from[at] == kNew) {
      seen_from[at] = start;
      at = parents[at];
    }
    // Only a walk that comes back upon itself has found a cycle, and for the first time.
    if (at < 0 || seen_from[at] != start) continue;
    std::vector<int>& cycle = cycles.emplace_back();
    for (int member = at; cycle.empty() || member != at; member = parents[member]) {
      cycle.push_back(member);
    }
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  }
  std::sort(cycles.begin(), cycles.end());
  return cycles;
}

}  // namespace muster::schedule
