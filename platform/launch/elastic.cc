#include "launch/elastic.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "launch/gang.h"
#include "launch/mpi_hosts.h"
#include "launch/mpirun_command.h"
#include "launch/plan.h"
#include "launch/plan_task.h"

namespace muster::launch {

using job::JobSpec;
using job::TaskRole;

namespace {

template <typename Is>
bool any_word(const JobSpec& spec, TaskRole role, Is is) {
  const std::vector<std::string> command = program_of(spec, role, {});
  const std::vector<std::string_view> words = words_of(command);
  return std::any_of(words.begin(), words.end(), is);
}

/// Current and former names of the torchrun program and its modules.
bool runs_torchrun(const JobSpec& spec, TaskRole role) {
  return any_word(spec, role, [](std::string_view word) {
    return is_file_named(word, "torchrun") || word == "torch.distributed.run" ||
           word == "torch.distributed.launch";
  });
}

/// horovodrun gets a discovery script (Muster's or the user's) only for elastic runs.
bool asks_who_is_there(const JobSpec& spec) {
  return any_word(spec, TaskRole::kLauncher, [](std::string_view word) {
    return is_file_named(word, "discover_hosts.sh") || word.starts_with("--host-discovery-script");
  });
}

}  // namespace

bool resizes_live(const JobSpec& spec) {
  if (!is_elastic(spec)) return false;
  if (spec.scheduling.resize != job::Resize::kAuto) {
    return spec.scheduling.resize == job::Resize::kLive;
  }
  switch (spec.kind) {
    case job::Kind::kMpi:
      return asks_who_is_there(spec);
    case job::Kind::kTorch:
      return runs_torchrun(spec, TaskRole::kMaster) && runs_torchrun(spec, TaskRole::kWorker);
    case job::Kind::kGrpc:
    case job::Kind::kSingle:
      break;
  }
  return false;
}

// Workers that join a running gang.

using base::Result;
using job::Job;
using job::Task;

namespace {

Result<void> check_joining(const GangContext& gang, const std::set<std::string>& joining) {
  std::set<std::string> unknown = joining;
  for (const Task* task : gang.tasks) {
    const bool is_new =
        task->phase == job::TaskPhase::kPending || task->phase == job::TaskPhase::kStarting;
    if (is_new) unknown.erase(task->name);
  }
  if (unknown.empty()) return {};
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = "job '" + gang.job.spec.name + "' has no placed task that " +
                             "could still start as " + base::joined(unknown)};
}

bool has_changes(const FileChange& change) {
  return !change.files.empty() || !change.hosts.empty();
}

}  // namespace

Result<Growth> plan_growth(const Job& job, const std::set<std::string>& joining,
                           const GangSeed& seed, const Site& site) {
  MUSTER_TRY(const GangContext gang, gather_gang(job, seed, site));
  MUSTER_CHECK(check_joining(gang, joining));
  Growth growth;
  for (size_t i = 0; i < gang.tasks.size(); ++i) {
    const Task& task = *gang.tasks[i];
    if (joining.contains(task.name)) {
      growth.joining.push_back(plan_task(gang, i));
    } else if (task.phase == job::TaskPhase::kRunning) {
      FileChange change{
          .task = task.name, .files = reach_files(gang, i), .hosts = names_for(gang, i)};
      if (has_changes(change)) growth.before.push_back(std::move(change));
    }
  }
  return growth;
}

// The members of a running gang.

namespace {

/// In the order of the job's tasks.
Result<std::vector<const Task*>> tasks_named(const Job& job, const std::set<std::string>& members) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    const bool is_there = task.role == TaskRole::kWorker && !task.node.empty() && !task.left;
    if (is_there && members.contains(task.name)) tasks.push_back(&task);
  }
  if (tasks.size() == members.size()) return tasks;
  std::set<std::string> unknown = members;
  for (const Task* task : tasks) unknown.erase(task->name);
  return base::Error{.code = base::ErrorCode::kInternal,
                     .what = "job '" + job.spec.name + "' has no worker '" + *unknown.begin() +
                             "' that can be a member"};
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
