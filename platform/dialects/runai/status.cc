#include "dialects/runai/status.h"

#include <algorithm>
#include <set>

#include "dialects/runai/runai.h"
#include "job/job.h"

namespace muster::dialects::runai {

using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

constexpr int64_t kWhole = 1000;

bool is_leaving(const Job& job) {
  return job.stop_requested || job.eviction.has_value();
}

bool is_held_back(const Job& job) {
  return job.phase == Phase::kQueued && job.suspended;
}

/// Of an elastic gang, those that have no place or have left are no part of it as it runs now.
bool is_in_gang(const Job& job, const Task& task) {
  return !task.left && (!job.spec.scheduling.min_workers || !task.node.empty());
}

bool has_task_in(const Job& job, TaskPhase phase) {
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.phase == phase && is_in_gang(job, task);
  });
}

/// The launcher of an MPI job is started once its workers answer.
bool waits_for_workers(const Job& job, const Task& task) {
  return job.phase == Phase::kStarting && task.role == job::Role::kLauncher &&
         task.phase == TaskPhase::kPending;
}

/// Its time was up, and it was told to end: whatever ended by itself shortly before has no such
/// mark on the task that decides.
bool is_timed_out(const Job& job) {
  const auto& limit = job.spec.scheduling.time_limit;
  if (!limit || !job.started || !job.ended || job.stop_requested || job.tasks.empty()) return false;
  const auto& exit = job::deciding_task(job).exit;
  return exit && exit->stopped && *job.ended - *job.started >= *limit;
}

std::string status_of_started(const Job& job) {
  const bool launcher_waits =
      std::any_of(job.tasks.begin(), job.tasks.end(),
                  [&](const Task& task) { return waits_for_workers(job, task); });
  if (launcher_waits) return "Init:0/1";
  if (job.phase == Phase::kStarting) return "ContainerCreating";
  if (has_task_in(job, TaskPhase::kPending)) return "Pending";
  if (has_task_in(job, TaskPhase::kStarting)) return "ContainerCreating";
  return "Running";
}

std::string status_of_end(const Job& job, const job::ExitStatus& exit) {
  if (!exit.error.empty()) return "ContainerCannotRun";
  if (exit.lost) return "Unknown";
  if (exit.out_of_memory) return "OOMKilled";
  if (exit.succeeded()) return "Completed";
  if (!exit.stopped) return "Error";
  // Workers do their part until they are told to end.
  return job.phase == Phase::kSucceeded ? "Completed" : "Terminated";
}

int64_t requested_milli(const job::Resources& resources) {
  return resources.gpus * kWhole + resources.gpu_share_milli;
}

}  // namespace

std::string status_of(const Job& job) {
  switch (job.phase) {
    case Phase::kSucceeded:
      return "Succeeded";
    case Phase::kFailed:
      return is_timed_out(job) ? "TimedOut" : "Failed";
    case Phase::kStopped:
      return "Stopped";
    case Phase::kQueued:
      return is_held_back(job) ? "Suspended" : "Pending";
    case Phase::kStarting:
    case Phase::kRunning:
      break;
  }
  return is_leaving(job) ? "Terminating" : status_of_started(job);
}

std::string status_of(const Job& job, const Task& task) {
  switch (task.phase) {
    case TaskPhase::kPending:
      if (job::is_final(job.phase)) return "N/A";
      if (is_held_back(job)) return "Suspended";
      return waits_for_workers(job, task) ? "Init:0/1" : "Pending";
    case TaskPhase::kStarting:
      return is_leaving(job) || task.left ? "Terminating" : "ContainerCreating";
    case TaskPhase::kRunning:
      return is_leaving(job) || task.left ? "Terminating" : "Running";
    case TaskPhase::kEnded:
      break;
  }
  return task.exit ? status_of_end(job, *task.exit) : "Unknown";
}

std::string type_of(const Job& job) {
  switch (job.spec.scheduling.purpose) {
    case job::Purpose::kTrain:
      return "Train";
    case job::Purpose::kInference:
      return "Inference";
    case job::Purpose::kBuild:
      break;
  }
  return job::is_preemptible(job.spec.scheduling) ? "Interactive-Preemptible" : "Interactive";
}

std::string user_of(const Job& job) {
  const auto said = job.spec.annotations.find(kUser);
  const std::string& user =
      said != job.spec.annotations.end() && !said->second.empty() ? said->second : job.owner;
  return user.empty() ? "-" : user;
}

PodCounts count_pods(const Job& job) {
  PodCounts counts;
  for (const Task& task : job.tasks) {
    if (task.phase == TaskPhase::kRunning) ++counts.running;
    const bool waits = task.phase == TaskPhase::kPending || task.phase == TaskPhase::kStarting;
    if (waits && !job::is_final(job.phase) && !is_held_back(job)) ++counts.pending;
    if (!task.exit) continue;
    const std::string status = status_of_end(job, *task.exit);
    if (status == "Completed") ++counts.succeeded;
    if (status != "Completed" && status != "Terminated") ++counts.failed;
  }
  return counts;
}

GpuCounts count_gpus(const Job& job) {
  GpuCounts counts;
  std::set<int> seats;
  for (const Task& task : job.tasks) {
    // Whoever comes in the place of a worker that left asks for no more than that one did.
    if (seats.insert(task.seat).second) {
      const job::Resources& resources = job::resources_of(job.spec, task.role);
      counts.requested_milli += requested_milli(resources);
      counts.requested_memory_bytes += resources.gpu_memory_bytes;
    }
    if (job::is_final(job.phase) || job::has_gone(task)) continue;
    counts.allocated_milli += static_cast<int64_t>(task.devices.size()) * task.gpu_share_milli;
  }
  return counts;
}

std::string node_of(const Job& job) {
  std::set<std::string> nodes;
  for (const Task& task : job.tasks) {
    if (!task.node.empty() && !job::has_gone(task)) nodes.insert(task.node);
  }
  if (nodes.empty()) return "N/A";
  return nodes.size() == 1 ? *nodes.begin() : "<multiple>";
}

}  // namespace muster::dialects::runai
