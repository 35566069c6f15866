// Workers that join a gang that runs.
#include "base/text.h"
#include "launch/gather_gang.h"
#include "launch/plan.h"
#include "launch/plan_task.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::Task;

namespace {

Result<void> check_joining(const Gang& gang, const std::set<std::string>& joining) {
  std::set<std::string> unknown = joining;
  for (const Task* task : gang.tasks) {
    const bool is_new =
        task->phase == job::TaskPhase::kPending || task->phase == job::TaskPhase::kStarting;
    if (is_new) unknown.erase(task->name);
  }
  if (unknown.empty()) return {};
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = "job '" + gang.job.spec.name + "' has no task with a place that " +
                             "could still start as " + base::joined(unknown)};
}

bool is_told(const FileChange& change) {
  return !change.files.empty() || !change.hosts.empty();
}

}  // namespace

Result<Growth> plan_growth(const Job& job, const std::set<std::string>& joining,
                           const GangSeed& seed, const Site& site) {
  MUSTER_TRY(const Gang gang, gather_gang(job, seed, site));
  MUSTER_CHECK(check_joining(gang, joining));
  Growth growth;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    const Task& task = *gang.tasks[i];
    if (joining.contains(task.name)) {
      growth.joining.push_back(plan_task(gang, i));
    } else if (task.phase == job::TaskPhase::kRunning) {
      FileChange change{
          .task = task.name, .files = reach_files(gang, i), .hosts = names_for(gang, i)};
      if (is_told(change)) growth.before.push_back(std::move(change));
    }
  }
  return growth;
}

}  // namespace muster::launch
