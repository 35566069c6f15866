#include "control/projects.h"

#include <algorithm>

#include "base/text.h"
#include "control/schedule_view.h"
#include "schedule/ledger.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Project;

namespace {

Error invalid(const std::string& name, std::vector<base::Fault> faults) {
  return {.code = ErrorCode::kInvalid,
          .what = "the project '" + name + "' cannot be kept as it is",
          .faults = std::move(faults)};
}

Project default_project(base::Time now) {
  return {.name = std::string(job::kDefaultProject), .takes_the_rest = true, .created = now};
}

bool says_its_own_quota(const Project& project) {
  return project.quota != job::Quota{} || !project.pools.empty();
}

}  // namespace

void Projects::load(std::vector<Project> projects, base::Time now) {
  projects_.clear();
  for (Project& project : projects) projects_[project.name] = std::move(project);
  projects_.try_emplace(std::string(job::kDefaultProject), default_project(now));
}

Result<const Project*> Projects::find(const std::string& name) const {
  const auto found = projects_.find(name);
  if (found != projects_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, project] : projects_) names.push_back(known);
  const std::string near = base::nearest(name, names);
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no project '" + name + "'",
               .advice = near.empty() ? "muster project create " + name + " --gpus N makes it"
                                      : "did you mean '" + near + "'?"};
}

bool Projects::has_children(const std::string& name) const {
  return std::any_of(projects_.begin(), projects_.end(),
                     [&](const auto& entry) { return entry.second.parent == name; });
}

std::vector<std::string> Projects::family(const std::string& name) const {
  std::vector<std::string> names{name};
  for (size_t next = 0; next < names.size(); ++next) {
    for (const auto& [child, project] : projects_) {
      if (project.parent == names[next]) names.push_back(child);
    }
  }
  return names;
}

Result<Project> Projects::checked_new(Project project, base::Time now) const {
  if (projects_.count(project.name) > 0) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "there is a project '" + project.name + "' already",
                 .advice = "muster project set " + project.name + " changes it"};
  }
  project.created = now;
  project.takes_the_rest = false;
  project.sequence = 1;
  for (const auto& [name, known] : projects_) {
    project.sequence = std::max(project.sequence, known.sequence + 1);
  }
  MUSTER_CHECK(check_tree_with(project));
  return project;
}

Result<Project> Projects::checked_change(Project project) const {
  MUSTER_TRY(const Project* const known, find(project.name));
  project.created = known->created;
  project.sequence = known->sequence;
  project.takes_the_rest =
      known->takes_the_rest && project.takes_the_rest && !says_its_own_quota(project);
  MUSTER_CHECK(check_tree_with(project));
  return project;
}

Result<void> Projects::check_tree_with(const Project& project) const {
  std::vector<base::Fault> faults = job::validate_project(project);
  if (faults.empty()) {
    std::map<std::string, Project> all = projects_;
    all[project.name] = project;
    std::vector<schedule::Project> tree;
    for (const auto& [name, each] : all) tree.push_back(to_schedule(each));
    faults = schedule::check_projects(tree);
  }
  if (!faults.empty()) return invalid(project.name, std::move(faults));
  return {};
}

/// What no other project at the top was promised.
schedule::Quota Projects::rest_of(const std::string& pool, const schedule::Amounts& total) const {
  schedule::Quota quota;
  quota.deserved = total;
  for (const auto& [name, project] : projects_) {
    if (project.takes_the_rest || !project.parent.empty()) continue;
    const auto own = project.pools.find(pool);
    const schedule::Quota other =
        to_schedule(own == project.pools.end() ? project.quota : own->second);
    const int64_t promised = std::min(other.deserved.gpu_milli, quota.deserved.gpu_milli);
    quota.deserved.gpu_milli -= promised;
  }
  quota.deserved.cpu_milli = schedule::kUnlimited;
  quota.deserved.memory_bytes = schedule::kUnlimited;
  return quota;
}

std::vector<schedule::Project> Projects::for_scheduler(const PoolTotals& totals) const {
  std::vector<schedule::Project> result;
  for (const auto& [name, project] : projects_) {
    result.push_back(to_schedule(project));
    if (!project.takes_the_rest) continue;
    for (const auto& [pool, total] : totals) {
      result.back().quotas[pool] = rest_of(pool, total);
    }
  }
  return result;
}

}  // namespace muster::control
