#include "control/projects.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "control/gang_tasks.h"
#include "control/schedule_view.h"
#include "control/unknown_name.h"
#include "job/pod_container.h"
#include "schedule/ledger.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Project;

namespace {

Error invalid(const std::string& name, std::vector<base::Fault> faults) {
  return {.code = ErrorCode::kInvalid,
          .what = "project '" + name + "' is invalid",
          .faults = std::move(faults)};
}

Project default_project(base::Time now) {
  return {.name = std::string(job::kDefaultProject), .takes_the_rest = true, .created = now};
}

/// Whether `changed` gets the rest of the GPUs. `known` is its former state: a new number of GPUs
/// replaces the rest, and the rest replaces a former number.
bool has_the_rest(const Project& known, const Project& changed) {
  const bool was_given_gpus = changed.quota.deserved.gpu_milli != known.quota.deserved.gpu_milli;
  return changed.takes_the_rest && !(known.takes_the_rest && was_given_gpus);
}

/// Only one project can get the rest that no other project was promised.
Result<void> check_the_rest(const Project& project) {
  if (!project.takes_the_rest || project.name == job::kDefaultProject) return {};
  return invalid(project.name, {{"takes_the_rest",
                                 "only the project 'default' can have the GPUs that no other "
                                 "project was promised; give a number (--gpus 2)"}});
}

}  // namespace

void Projects::load(std::vector<Project> projects, base::Time now) {
  projects_.clear();
  children_.clear();
  for (Project& project : projects) put(std::move(project));
  if (!projects_.contains(std::string(job::kDefaultProject))) put(default_project(now));
}

void Projects::put(Project project) {
  remove(project.name);
  if (!project.parent.empty()) ++children_[project.parent];
  const std::string name = project.name;
  projects_.emplace(name, std::move(project));
}

void Projects::remove(const std::string& name) {
  const auto known = projects_.find(name);
  if (known == projects_.end()) return;
  const auto parent = children_.find(known->second.parent);
  if (parent != children_.end() && --parent->second == 0) children_.erase(parent);
  projects_.erase(known);
}

Result<const Project*> Projects::find(const std::string& name) const {
  const auto found = projects_.find(name);
  if (found != projects_.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, project] : projects_) names.push_back(known);
  return unknown_name("project", name, names,
                      "muster project create " + name + " --gpus N makes it");
}

std::vector<std::string> Projects::line_of(const std::string& name) const {
  std::vector<std::string> names;
  for (auto at = projects_.find(name); at != projects_.end();
       at = projects_.find(at->second.parent)) {
    names.push_back(at->first);
  }
  return names;
}

std::vector<const Project*> Projects::in_tree_order() const {
  std::map<std::string, std::vector<const Project*>> below;
  for (const auto& [name, project] : projects_) below[project.parent].push_back(&project);
  std::vector<const Project*> order;
  const std::function<void(const std::string&)> add_below = [&](const std::string& parent) {
    const auto found = below.find(parent);
    if (found == below.end()) return;
    std::sort(found->second.begin(), found->second.end(),
              [](const auto* left, const auto* right) { return left->sequence < right->sequence; });
    for (const Project* project : found->second) {
      order.push_back(project);
      add_below(project->name);
    }
  };
  add_below("");
  return order;
}

Result<Project> Projects::checked_new(Project project, base::Time now) const {
  if (projects_.count(project.name) > 0) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project '" + project.name + "' exists already",
                 .advice = "muster project set " + project.name + " changes it"};
  }
  MUSTER_CHECK(check_the_rest(project));
  project.created = now;
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
  MUSTER_CHECK(check_the_rest(project));
  project.takes_the_rest = has_the_rest(*known, project);
  if (project.takes_the_rest) project.quota.deserved.gpu_milli = 0;
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

/// GPUs of the pool that no other project at the top was promised.
int64_t Projects::rest_of(const std::string& pool, int64_t gpu_milli) const {
  for (const auto& [name, project] : projects_) {
    if (project.takes_the_rest || !project.parent.empty()) continue;
    const auto own = project.pools.find(pool);
    const schedule::Quota other =
        to_schedule(own == project.pools.end() ? project.quota : own->second);
    gpu_milli -= std::min(other.deserved.gpu_milli, gpu_milli);
  }
  return gpu_milli;
}

/// The quota of the project in this pool without GPUs. A quota of the pool itself takes precedence.
schedule::Quota Projects::quota_with_rest(const Project& project, const std::string& pool,
                                          int64_t gpu_milli) const {
  const auto own = project.pools.find(pool);
  schedule::Quota quota = to_schedule(own == project.pools.end() ? project.quota : own->second);
  if (quota.deserved.gpu_milli == 0) {
    quota.deserved.gpu_milli = std::min(rest_of(pool, gpu_milli), quota.limit.gpu_milli);
  }
  return quota;
}

std::vector<schedule::Project> Projects::for_scheduler(const PoolTotals& totals) const {
  std::vector<schedule::Project> result;
  for (const auto& [name, project] : projects_) {
    result.push_back(to_schedule(project));
    if (!project.takes_the_rest) continue;
    for (const auto& [pool, total] : totals) {
      result.back().quotas[pool] = quota_with_rest(project, pool, total.gpu_milli);
    }
  }
  return result;
}

using schedule::Amounts;

namespace {

/// The weight of a run: the fraction of the decayed time until now that it lasted.
double weight_of(const job::RunSpan& run, base::Time now, std::chrono::nanoseconds half_life) {
  const auto remains = [&](base::Time time) {
    // If the clock was set back, times may lie in the future.
    const std::chrono::nanoseconds age = std::max(now - time, std::chrono::nanoseconds(0));
    return std::exp2(-std::chrono::duration<double>(age) /
                     std::chrono::duration<double>(half_life));
  };
  return std::max(0.0, remains(run.end.value_or(now)) - remains(run.begin));
}

/// What each attempt of the job held. The tasks of a job that waits again have no places, so it
/// counts with what it requests.
job::HeldAmounts held_by_attempt(const job::JobFacts& job) {
  job::HeldAmounts held = job.held();
  if (held != job::HeldAmounts{}) return held;
  held.gpu_milli = job.gpu_milli();
  if (job.job == nullptr) return held;
  for (const job::Task& task : job.job->tasks) {
    const job::Resources claim = job::claimed_by(job.job->spec, task.role);
    held.cpu_milli += claim.cpu_milli;
    held.memory_bytes += claim.memory_bytes;
  }
  return held;
}

int64_t thousandths(double use, int64_t total) {
  return total <= 0 ? 0 : std::llround(1000 * use / static_cast<double>(total));
}

}  // namespace

std::map<std::string, Amounts> past_use(const Projects& projects, const EachJob& each_job,
                                        const Amounts& total, base::Time now,
                                        std::chrono::nanoseconds half_life) {
  std::map<std::string, std::array<double, 3>> by_leaf;
  each_job([&](const job::JobFacts& job) {
    double weight = 0;
    job.each_run([&](const job::RunSpan& run) { weight += weight_of(run, now, half_life); });
    if (weight <= 0) return;
    const job::HeldAmounts held = held_by_attempt(job);
    auto& sum = by_leaf[std::string(job.project)];
    sum[0] += weight * static_cast<double>(held.gpu_milli);
    sum[1] += weight * static_cast<double>(held.cpu_milli);
    sum[2] += weight * static_cast<double>(held.memory_bytes);
  });
  std::map<std::string, std::array<double, 3>> use;
  for (const auto& [leaf, sum] : by_leaf) {
    for (const std::string& project : projects.line_of(leaf)) {
      for (size_t resource = 0; resource < sum.size(); ++resource) {
        use[project][resource] += sum[resource];
      }
    }
  }
  std::map<std::string, Amounts> result;
  for (const auto& [project, sum] : use) {
    const Amounts parts{thousandths(sum[0], total.gpu_milli), thousandths(sum[1], total.cpu_milli),
                        thousandths(sum[2], total.memory_bytes)};
    if (parts != Amounts{}) result[project] = parts;
  }
  return result;
}

}  // namespace muster::control
