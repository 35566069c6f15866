// Projects as callers see and change them. Each change is committed before it returns, and the
// scheduler learns of it. `by` is the caller: the audit log records the change in the same commit,
// if `by` names a user.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "base/event_loop.h"
#include "control/accounts.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/node_table.h"
#include "control/placement.h"
#include "control/projects.h"
#include "control/scheduler_book.h"

namespace muster::control {

class ProjectService {
 public:
  struct Dependencies {
    base::EventLoop& loop;
    const base::Clock& clock;
    Journal& journal;
    JobTable& jobs;
    const NodeTable& nodes;
    SchedulerBook& book;
    Placement& placement;
    Accounts* accounts = nullptr;  ///< nullptr: this server has no accounts
    bool weighs_past_use = false;  ///< past use counts in fair shares
    /// Is called for each project that was deleted, so that another project of its name does not
    /// get its files.
    std::function<void(const std::string& project)> deleted;
    std::function<void()> wake;  ///< the scheduler should plan again soon
    /// The number of schedules of the project. Not set: the server has no schedules.
    std::function<size_t(const std::string& project)> count_schedules;
    /// The number of its arrays and sweeps that have not ended. Not set if it has no such object.
    std::function<size_t(const std::string& project)> count_open_objects;
  };
  explicit ProjectService(Dependencies parts);

  void load(std::vector<job::Project> projects);

  /// kInvalid with every fault, faults of the tree of projects included; kConflict: the name is
  /// taken, or the parent has jobs, arrays or sweeps that have not ended, or schedules.
  Result<job::ProjectStatus> create(job::Project project, const access::Actor& by = {});
  /// Replaces the project of this name. A quota below the present use is not an error: the project
  /// is over its quota then.
  Result<job::ProjectStatus> set(job::Project project, const access::Actor& by = {});
  /// kConflict for the default project, a project with jobs that have not ended or with schedules,
  /// and a project with projects below it.
  Result<void> remove(const std::string& name, const access::Actor& by = {});

  /// kNotFound with the nearest name.
  Result<job::ProjectStatus> status(const std::string& name) const;
  std::vector<job::ProjectStatus> list() const;  ///< parents first, then by age
  const Projects& table() const { return projects_; }
  /// The project, its parent, and so on up to the top; empty: the project does not exist.
  std::vector<std::string> line_of(const std::string& name) const {
    return projects_.line_of(name);
  }
  /// Whether the project that the job was submitted to still exists. If it was deleted, members of
  /// another project of the same name have no rights over the job.
  bool has_project_of(const job::JobFacts& job) const;

  /// Projects or quotas have changed, or jobs were loaded. Counts the past use anew.
  void update_scheduler();
  /// Counts the past use anew only if the totals of the nodes differ: that visits each job.
  void nodes_changed();

 private:
  struct JobCount {
    int running = 0;
    int waiting = 0;
    schedule::WideAmounts requested;  ///< many waiting jobs may exceed 64 bits
  };
  using JobCounts = std::map<std::string, JobCount>;  ///< by project

  Result<void> keep(const job::Project& project, std::vector<access::AuditRecord> audit);
  Result<void> check_parent(const job::Project& project) const;
  int64_t count_unended(const std::string& project) const;
  size_t open_objects_of(const std::string& project) const;
  size_t schedules_of(const std::string& project) const;
  JobCounts count_jobs() const;
  job::ProjectStatus status_with(const job::Project& project, const JobCounts& counts) const;

  void count_past_use(const schedule::Amounts& total);

  Dependencies parts_;
  Projects projects_;
  /// Past use by project, as a part of `used_of_`; nothing: not counted yet.
  std::optional<std::map<std::string, schedule::Amounts>> past_use_;
  schedule::Amounts used_of_;
  base::EventLoop::Interest use_timer_;
};

}  // namespace muster::control
