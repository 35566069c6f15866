// Who takes part, for those who run.
#include "launch/mpi_hosts.h"
#include "launch/plan.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Role;
using job::Task;

namespace {

/// In the job's order.
Result<std::vector<const Task*>> tasks_named(const Job& job, const std::set<std::string>& members) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    const bool is_there = task.role == Role::kWorker && !task.node.empty() && !task.left;
    if (is_there && members.contains(task.name)) tasks.push_back(&task);
  }
  if (tasks.size() == members.size()) return tasks;
  std::set<std::string> unknown = members;
  for (const Task* task : tasks) unknown.erase(task->name);
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = "job '" + job.spec.name + "' has no worker '" + *unknown.begin() +
                             "' that could take part"};
}

}  // namespace

Result<std::vector<FileChange>> plan_membership(const Job& job,
                                                const std::set<std::string>& members) {
  if (job.spec.kind != job::Kind::kMpi) return std::vector<FileChange>();
  MUSTER_TRY(const std::vector<const Task*> tasks, tasks_named(job, members));
  const std::vector<PlannedFile> files = host_files(slot_hosts_of(job, tasks));
  std::vector<FileChange> changes;
  for (const Task& task : job.tasks) {
    if (task.phase != job::TaskPhase::kRunning || task.left) continue;
    changes.push_back({.task = task.name, .files = files, .hosts = {}});
  }
  return changes;
}

}  // namespace muster::launch
