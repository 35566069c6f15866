// The table of projects: which there are, which change of them makes sense, and what each deserves
// once the one that takes the rest has been given it.
//
// Plain values, no I/O: the controller commits what comes out of it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/node_table.h"
#include "job/job.h"
#include "job/project.h"
#include "schedule/model.h"

namespace muster::control {

using base::Result;

class Projects {
 public:
  /// Replaces all. The default project is always there.
  void load(std::vector<job::Project> projects, base::Time now);

  const std::map<std::string, job::Project>& all() const { return projects_; }
  /// kNotFound with the nearest name.
  Result<const job::Project*> find(const std::string& name) const;
  bool has_children(const std::string& name) const;
  /// `name`, then its parent, and so on up to the top.
  std::vector<std::string> line_of(const std::string& name) const;
  /// Each followed by those below it; siblings by age.
  std::vector<const job::Project*> in_tree_order() const;

  /// The project as it is to be kept: with its sequence and time. Errors as create_project() and
  /// set_project() of the controller have them; nothing is changed.
  Result<job::Project> checked_new(job::Project project, base::Time now) const;
  Result<job::Project> checked_change(job::Project project) const;

  void put(const job::Project& project) { projects_[project.name] = project; }
  void remove(const std::string& name) { projects_.erase(name); }

  std::vector<schedule::Project> for_scheduler(const PoolTotals& totals) const;

 private:
  Result<void> check_tree_with(const job::Project& project) const;
  int64_t rest_of(const std::string& pool, int64_t gpu_milli) const;
  schedule::Quota quota_with_rest(const job::Project& project, const std::string& pool,
                                  int64_t gpu_milli) const;

  std::map<std::string, job::Project> projects_;
};

// How much of the cluster each project has used of late, with what is longer ago counting less:
// half as much every half-life. A project that held a quarter of the GPUs all along comes to 250.
//
// Told from the jobs that are known, so nothing is kept beside them, and a restarted server knows
// what the one before knew. Of a job that started again only the last run counts. Pure.

inline constexpr std::chrono::hours kUseHalfLife{7 * 24};

/// By project, in thousandths of `total`. Projects that used nothing are not in it.
std::map<std::string, schedule::Amounts> past_use(const std::vector<const job::Job*>& jobs,
                                                  const schedule::Amounts& total, base::Time now,
                                                  std::chrono::nanoseconds half_life);

}  // namespace muster::control
