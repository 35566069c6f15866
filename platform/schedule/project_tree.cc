#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/text.h"
#include "job/amounts.h"
#include "schedule/ledger.h"

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
    // Only a walk that returns to its own start has found a cycle, and only once.
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

namespace {

using Faults = std::vector<base::Fault>;

const char* field_of(Resource resource) {
  return resource == Resource::kGpu ? "gpus" : resource == Resource::kCpu ? "cpus" : "memory";
}

std::string quoted_name(const std::string& name) {
  return "'" + name + "'";
}

void check_names(const std::vector<Project>& projects, Faults& faults) {
  std::set<std::string_view> names;
  std::set<std::string_view> reported;
  for (const Project& project : projects) {
    if (project.name.empty()) faults.push_back({"name", "a project has no name; give it one"});
    const bool again = !names.insert(project.name).second;
    if (again && !project.name.empty() && reported.insert(project.name).second) {
      faults.push_back({"name", "there are several projects " + quoted_name(project.name) +
                                    "; rename all but one"});
    }
  }
}

void check_parents(const std::vector<Project>& projects, const std::vector<int>& parents,
                   Faults& faults) {
  std::vector<std::string> names;
  for (const Project& project : projects) names.push_back(project.name);
  for (size_t i = 0; i < projects.size(); ++i) {
    const Project& project = projects[i];
    if (project.parent.empty() || parents[i] >= 0) continue;
    const std::string meant = base::nearest(project.parent, names);
    faults.push_back(
        {"parent", "project " + quoted_name(project.name) + ": there is no project " +
                       quoted_name(project.parent) + " to be its parent" +
                       (meant.empty() ? "" : "; did you mean " + quoted_name(meant) + "?")});
  }
}

void check_cycles(const std::vector<Project>& projects, const std::vector<int>& parents,
                  Faults& faults) {
  for (const std::vector<int>& cycle : cycles_of(parents)) {
    const std::string& first = projects[static_cast<size_t>(cycle.front())].name;
    if (cycle.size() == 1) {
      faults.push_back({"parent", "project " + quoted_name(first) +
                                      " is its own parent; give it another parent or none"});
      continue;
    }
    std::string circle;
    for (const int member : cycle) circle += projects[static_cast<size_t>(member)].name + " -> ";
    circle += first;
    faults.push_back({"parent", "the parents of projects form a cycle: " + circle +
                                    "; move one of them to the top"});
  }
}

void check_amounts(const std::string& project, const std::string& field, const Quota& quota,
                   Faults& faults) {
  for (const Resource resource : kResources) {
    const int64_t deserved = quota.deserved[resource];
    const int64_t limit = quota.limit[resource];
    const auto fault = [&](const char* part, const std::string& what) {
      faults.push_back(
          {field + part + field_of(resource), "project " + quoted_name(project) + ": " + what});
    };
    const std::string below_none = resource == Resource::kMemory ? " is negative" : " are negative";
    if (deserved < 0) fault(".deserved.", job::amount_text(resource, deserved) + below_none);
    if (limit < 0) fault(".limit.", job::amount_text(resource, limit) + below_none);
    // A quota of everything, up to the limit, is valid.
    if (deserved < kUnlimited && limit >= 0 && deserved > limit) {
      fault(".deserved.", "a quota of " + job::amount_text(resource, deserved) +
                              " is above the limit of " + job::amount_text(resource, limit) +
                              "; raise the limit or lower the quota");
    }
  }
}

void check_quota(const std::string& project, const std::string& field, const Quota& quota,
                 Faults& faults) {
  check_amounts(project, field, quota, faults);
  if (!std::isfinite(quota.weight) || quota.weight < 0) {
    const std::string given = std::isnan(quota.weight)   ? "is not a number"
                              : std::isinf(quota.weight) ? "is infinite"
                                                         : "is negative";
    faults.push_back({field + ".weight", "project " + quoted_name(project) + ": its weight " +
                                             given + "; give 0 (nothing over quota) or more"});
  }
}

void check_numbers(const Project& project, Faults& faults) {
  check_quota(project.name, "quota", project.quota, faults);
  for (const auto& [pool, quota] : project.quotas) {
    check_quota(project.name, "quotas." + pool, quota, faults);
  }
  const auto check_time = [&](const char* field, Milliseconds time) {
    if (time.count() >= 0) return;
    faults.push_back({field, "project " + quoted_name(project.name) + ": " +
                                 std::to_string(time.count()) + " ms is negative"});
  };
  check_time("reclaim_min_runtime", project.reclaim_min_runtime);
  check_time("preempt_min_runtime", project.preempt_min_runtime);
  for (const Resource resource : kResources) {
    if (project.past_use[resource] >= 0) continue;
    faults.push_back({std::string("past_use.") + field_of(resource),
                      "project " + quoted_name(project.name) + ": its past use is negative"});
  }
}

}  // namespace

std::vector<base::Fault> check_projects(const std::vector<Project>& projects) {
  Faults faults;
  check_names(projects, faults);
  const std::vector<int> parents = parents_of(projects);
  check_parents(projects, parents, faults);
  check_cycles(projects, parents, faults);
  for (const Project& project : projects) check_numbers(project, faults);
  return faults;
}

}  // namespace muster::schedule
