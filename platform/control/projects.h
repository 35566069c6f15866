// The table of projects: checks changes of projects, and computes the quota of each project for the
// scheduler, including the project that gets the rest of the GPUs.
//
// Plain values, no I/O: ProjectService commits the changes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/node_table.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "job/project.h"
#include "schedule/model.h"

namespace muster::control {

using base::Result;

class Projects {
 public:
  /// Replaces all projects. The default project always exists.
  void load(std::vector<job::Project> projects, base::Time now);

  const std::map<std::string, job::Project>& all() const { return projects_; }
  /// kNotFound with the nearest name.
  Result<const job::Project*> find(const std::string& name) const;
  bool has_children(const std::string& name) const { return children_.contains(name); }
  /// `name`, then its parent, and so on up to the top.
  std::vector<std::string> line_of(const std::string& name) const;
  /// Each project is followed by the projects below it; siblings by age.
  std::vector<const job::Project*> in_tree_order() const;

  /// The project as it is to be stored, with its sequence and time. Changes nothing. Errors are
  /// those of ProjectService::create() and set().
  Result<job::Project> checked_new(job::Project project, base::Time now) const;
  Result<job::Project> checked_change(job::Project project) const;

  void put(job::Project project);
  void remove(const std::string& name);

  std::vector<schedule::Project> for_scheduler(const PoolTotals& totals) const;

 private:
  Result<void> check_tree_with(const job::Project& project) const;
  int64_t rest_of(const std::string& pool, int64_t gpu_milli) const;
  schedule::Quota quota_with_rest(const job::Project& project, const std::string& pool,
                                  int64_t gpu_milli) const;

  std::map<std::string, job::Project> projects_;
  /// How many projects are directly below a project, for those with any: each submitted job asks.
  std::map<std::string, int> children_;
};

// The use of the cluster by each project in the past. Older use counts less: half as much every
// half-life. A project that always held a quarter of the GPUs has 250 thousandths.
//
// The figures are computed from all attempts of the known jobs, so nothing else is stored, and a
// restarted server computes the same. An earlier attempt counts with the amounts of the latest.

inline constexpr std::chrono::hours kUseHalfLife{7 * 24};

/// Calls a function for each job.
using EachJob = std::function<void(const std::function<void(const job::JobFacts&)>& visit)>;

/// By project, in thousandths of `total`, without projects that used nothing. A project has also
/// used what the projects below it have.
std::map<std::string, schedule::Amounts> past_use(const Projects& projects, const EachJob& each_job,
                                                  const schedule::Amounts& total, base::Time now,
                                                  std::chrono::nanoseconds half_life);

}  // namespace muster::control
