#include "dialects/runai/job_views.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "base/units.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "dialects/runai/commands.h"
#include "dialects/runai/runai.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

std::string age_words(std::chrono::nanoseconds age) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  constexpr int64_t kYear = 365 * kDay;
  if (seconds < kMinute) return std::to_string(seconds) + "s";
  if (seconds < kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < kDay) return std::to_string(seconds / kHour) + "h";
  if (seconds < kYear) return std::to_string(seconds / kDay) + "d";
  return std::to_string(seconds / kYear) + "y";
}

std::string age_of(const job::Job& job, base::Time now) {
  return age_words(now - job.submitted);
}

std::string age_of(const job::Job& job, const job::Task& task, base::Time now) {
  return age_words(now - task.started.value_or(job.submitted));
}

std::string duration_of(const job::Job& job, base::Time now) {
  if (!job.started) return "0s";
  return age_words(job.ended.value_or(now) - *job.started);
}

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

/// Workers of an elastic gang that have no resources or have left are not part of the running gang.
bool is_in_gang(const Job& job, const Task& task) {
  return !task.left && (!job.spec.scheduling.min_workers || !task.node.empty());
}

bool has_task_in(const Job& job, TaskPhase phase) {
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.phase == phase && is_in_gang(job, task);
  });
}

/// The launcher of an MPI job starts after its workers answer.
bool waits_for_workers(const Job& job, const Task& task) {
  return job.phase == Phase::kStarting && task.role == job::TaskRole::kLauncher &&
         task.phase == TaskPhase::kPending;
}

/// The job reached its time limit and was asked to end. If the deciding task ended by itself
/// shortly before, it has no such mark.
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

/// The engine could not start the task, and so no task of the job was started.
bool could_not_start(const Job& job, const Task& task) {
  if (job.phase != Phase::kFailed || !job.failure || job.attempt == 0) return false;
  const bool any_started = std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& each) {
    return each.started || each.phase != TaskPhase::kPending;
  });
  return !any_started && (job.failure->task.empty() || job.failure->task == task.name);
}

std::string status_of_end(const Job& job, const job::ExitStatus& exit) {
  if (exit.out_of_memory) return "OOMKilled";
  if (!exit.error.empty()) return "ContainerCannotRun";
  if (exit.lost) return "Unknown";
  if (exit.succeeded()) return "Completed";
  if (!exit.stopped) return "Error";
  // Workers run until they are asked to end.
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
      if (could_not_start(job, task)) return "ContainerCannotRun";
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
  const auto annotation = job.spec.annotations.find(kUser);
  const std::string& user = annotation != job.spec.annotations.end() && !annotation->second.empty()
                                ? annotation->second
                                : job.owner;
  return user.empty() ? "-" : user;
}

PodCounts count_pods(const Job& job) {
  PodCounts counts;
  for (const Task& task : job.tasks) {
    if (task.phase == TaskPhase::kRunning) ++counts.running;
    const bool waits = task.phase == TaskPhase::kPending || task.phase == TaskPhase::kStarting;
    if (waits && !job::is_final(job.phase) && !is_held_back(job)) ++counts.pending;
    if (could_not_start(job, task)) ++counts.failed;
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
    // The replacement of a worker that left requests no additional resources.
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

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

std::string in_capitals(std::string text) {
  for (char& letter : text) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return text;
}

/// The namespace that Run:AI uses for the jobs of a project.
std::string namespace_of(const Job& job) {
  return "runai-" + job.spec.project;
}

std::string annotation(const Job& job, const char* name) {
  const auto found = job.spec.annotations.find(name);
  return found == job.spec.annotations.end() ? "" : found->second;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string requested_gpus(const GpuCounts& gpus) {
  if (gpus.requested_memory_bytes > 0) return base::format_bytes(gpus.requested_memory_bytes);
  return base::format_milli(gpus.requested_milli);
}

std::string allocated_gpus(const Job& job, const GpuCounts& gpus) {
  return job::is_final(job.phase) ? "-" : base::format_milli(gpus.allocated_milli);
}

/// The claim of each pod; in a distributed job, of each worker.
std::string gpus_of_a_pod(const job::Resources& resources) {
  if (resources.gpu_memory_bytes > 0) return base::format_bytes(resources.gpu_memory_bytes);
  return base::format_milli(resources.gpus * int64_t{1000} + resources.gpu_share_milli);
}

/// Known if the job claims an amount of GPU memory.
std::string allocated_memory(const Job& job) {
  const bool is_asked_for = job.spec.resources.gpu_memory_bytes > 0;
  if (!is_asked_for || job::is_final(job.phase)) return "-";
  int64_t sum = 0;
  for (const Task& task : job.tasks) {
    if (!task.devices.empty() && !job::has_gone(task))
      sum += job::resources_of(job.spec, task.role).gpu_memory_bytes;
  }
  return base::format_bytes(sum);
}

/// "2 (0)"
std::string pods_of(const Job& job) {
  const PodCounts pods = count_pods(job);
  return std::to_string(pods.running) + " (" + std::to_string(pods.pending) + ")";
}

Lines lines_of(const Job& job, base::Time now) {
  const PodCounts pods = count_pods(job);
  const GpuCounts gpus = count_gpus(job);
  const std::string command_line = annotation(job, kCommandLine);
  Lines lines{{"NAME:", job.spec.name},
              {"NAMESPACE:", namespace_of(job)},
              {"TYPE:", type_of(job)},
              {"STATUS:", status_of(job)},
              {"TRAINING DURATION:", duration_of(job, now)},
              {"GPUS:", gpus_of_a_pod(job.spec.resources)},
              {"TOTAL REQUESTED GPUS:", requested_gpus(gpus)},
              {"ALLOCATED GPUS:", allocated_gpus(job, gpus)},
              {"ALLOCATED GPUS MEMORY:", allocated_memory(job)},
              {"RUNNING PODS:", std::to_string(pods.running)},
              {"PENDING PODS:", std::to_string(pods.pending)},
              {"PARALLELISM:", "1"},
              {"COMPLETIONS:", "1"},
              {"SUCCEEDED PODS:", std::to_string(pods.succeeded)},
              {"FAILED PODS:", std::to_string(pods.failed)},
              {"IS DISTRIBUTED WORKLOAD:", job.spec.kind == job::Kind::kSingle ? "false" : "true"},
              {"CREATED BY CLI:", command_line.empty() ? "false" : "true"},
              {"SERVICE URL(S):", ""},
              {"COMMAND LINE:", command_line}};
  const std::string launch = cli::launch_words(job);
  if (!launch.empty()) lines.emplace_back("LAUNCH:", launch);
  return lines;
}

/// Keys padded to one width; keys without a value are kept.
std::string text_of(const Lines& lines) {
  cli::Table table({{""}, {""}});
  for (const auto& [key, value] : lines) table.add({key, value});
  const std::string text = table.to_string();
  return text.substr(text.find('\n') + 1);  // without the empty title line
}

std::string reason_of_failure(const job::Failure& failure) {
  return "\nReason:\n  " + words::sentence(failure.cause) + "\n" + cli::evidence_text(failure);
}

/// Why the job waits, is being ended, or failed.
std::string reason_text(const Job& job, base::Time now) {
  if (job.failure) return reason_of_failure(*for_runai(job).failure);
  const bool is_well = job::is_final(job.phase) || status_of(job) == "Running";
  if (is_well || job::is_empty(job.reason)) return "";
  std::string text = "\nReason:\n  " + words::sentence(job.reason, kWords) + "\n";
  for (const std::string& detail : words::details(job.reason)) text += "  " + detail + "\n";
  if (job.may_start && job.phase == job::Phase::kQueued) {
    const bool is_past = *job.may_start <= now;
    text += "  may start " + (is_past ? "now" : "in " + age_words(*job.may_start - now)) + "\n";
  }
  return text;
}

std::string gpus_of_pod(const Task& task) {
  std::string text;
  for (const int device : task.devices) text += (text.empty() ? "" : ",") + std::to_string(device);
  return or_dash(text);
}

std::string node_of_pod(const Task& task) {
  return task.node.empty() ? "N/A" : task.node;
}

std::string pod_table(const Job& job, base::Time now, bool wide) {
  std::vector<cli::Column> columns{{"POD"}, {"STATUS"}, {"TYPE"}, {"AGE"}, {"NODE"}};
  if (wide) columns.insert(columns.end(), {{"GPUS"}, {"EXIT"}});
  cli::Table table(std::move(columns));
  for (const Task& task : job.tasks) {
    std::vector<std::string> row{task.hostname, in_capitals(status_of(job, task)),
                                 in_capitals(type_of(job)), age_of(job, task, now),
                                 node_of_pod(task)};
    if (wide) {
      row.push_back(gpus_of_pod(task));
      row.push_back(task.exit ? job::explain(*task.exit) : "-");
    }
    table.add(std::move(row));
  }
  return table.to_string();
}

/// Only the event that made the job fail is a warning.
bool is_warning(const job::Event& event) {
  const auto* const reached = std::get_if<job::PhaseReached>(&event.what);
  return std::holds_alternative<job::Failed>(event.what) ||
         (reached != nullptr && reached->phase == job::Phase::kFailed);
}

std::string job_event_table(const Job& job, base::Time now) {
  if (job.events.empty()) return "No events for resources\n";
  cli::Table table({{"SOURCE"}, {"TYPE"}, {"AGE"}, {"MESSAGE"}});
  for (const job::Event& event : job.events) {
    table.add({"job/" + job.spec.name, is_warning(event) ? "Warning" : "Normal",
               age_words(now - event.time), words::sentence(event.what, kWords)});
  }
  return table.to_string();
}

/// The kind of Kubernetes object that Run:AI would create.
std::string trainer_of(const Job& job) {
  switch (job.spec.kind) {
    case job::Kind::kMpi:
      return "mpijob";
    case job::Kind::kGrpc:
      return "tfjob";
    case job::Kind::kTorch:
      return "pytorchjob";
    case job::Kind::kSingle:
      break;
  }
  return "runaijob";
}

}  // namespace

std::string gpus_of(const Job& job) {
  const GpuCounts gpus = count_gpus(job);
  return allocated_gpus(job, gpus) + " (" + requested_gpus(gpus) + ")";
}

std::string job_list(const std::vector<Job>& jobs, base::Time now) {
  cli::Table table({{"NAME"},
                    {"STATUS"},
                    {"AGE"},
                    {"NODE"},
                    {"IMAGE"},
                    {"TYPE"},
                    {"PROJECT"},
                    {"USER"},
                    {"GPUs Allocated (Requested)"},
                    {"PODs Running (Pending)"},
                    {"SERVICE URL(S)"}});
  for (const Job& job : jobs) {
    table.add({job.spec.name, status_of(job), age_of(job, now), node_of(job),
               or_dash(job.spec.image), type_of(job), job.spec.project, user_of(job), gpus_of(job),
               pods_of(job)});
  }
  return table.to_string();
}

std::string job_description(const Job& job, base::Time now, bool wide) {
  std::string text = text_of(lines_of(job, now)) + reason_text(job, now);
  text += "\nPods:\n" + pod_table(job, now, wide);
  return text + "\nEvents:\n" + job_event_table(job, now);
}

std::string job_description_json(const Job& job, base::Time now) {
  using Json = nlohmann::ordered_json;
  Json json{{"name", job.spec.name},
            {"namespace", namespace_of(job)},
            {"duration", duration_of(job, now)},
            {"status", status_of(job)},
            {"trainer", trainer_of(job)},
            {"chiefName", job.tasks.empty() ? "" : job::deciding_task(job).hostname},
            {"priority", job::to_string(job.spec.scheduling.purpose)},
            {"commandLine", annotation(job, kCommandLine)},
            {"instances", Json::array()}};
  for (const Task& task : job.tasks) {
    json["instances"].push_back({{"status", status_of(job, task)},
                                 {"name", task.hostname},
                                 {"age", age_of(job, task, now)},
                                 {"node", node_of_pod(task)},
                                 {"chief", &task == &job::deciding_task(job)}});
  }
  return base::json_text(json);
}

}  // namespace muster::dialects::runai
