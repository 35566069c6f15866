#include "engine/process/process_tasks.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <system_error>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/folder/task_folder.h"
#include "engine/shim/process_tree.h"
#include "job/job.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// Pause before an adopted shim is looked at again that holds its lock but has not written its pid
/// yet.
constexpr std::chrono::milliseconds kAdoptionPause{20};

/// The value of a variable in an environment; empty: not set.
std::string variable_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& line : environment) {
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  }
  return {};
}

/// Reads the GPUs of a task from its plan.
void read_devices(const ShimPlan& plan, const Node& node, RunningTask& task) {
  const auto names = node.gpu_names;
  for (const std::string& gpu : plan.sampling.gpus) {
    const auto named = std::find(names.begin(), names.end(), gpu);
    int number = static_cast<int>(named - names.begin());
    if (named == names.end()) {
      const auto [end, failed] = std::from_chars(gpu.data(), gpu.data() + gpu.size(), number);
      if (failed != std::errc() || end != gpu.data() + gpu.size()) continue;
    }
    if (number >= 0 && number < node.gpus) task.devices.push_back(number);
  }
  if (task.devices.empty()) return;
  std::sort(task.devices.begin(), task.devices.end());
  constexpr int kWhole = 1000;
  const double share = std::atof(variable_in(plan.inner.environment, "MUSTER_GPU_SHARE").c_str());
  const bool is_part = share > 0 && share < 1;
  task.gpu_share_milli = is_part ? static_cast<int>(std::lround(share * kWhole)) : kWhole;
}

bool has_letters_of_an_id(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
  });
}

/// The other folders beside those of jobs (trees, storage, homes ...) have names of other lengths.
/// Some of them contain files of users, who must not feign tasks there.
bool names_a_job(const std::string& folder) {
  return folder.size() == job::kJobIdLength && has_letters_of_an_id(folder);
}

/// The file alone shows nothing: it exists, blank, before the task starts.
bool has_exit_record(const TaskFolder& folder) {
  const auto text = base::read_file(folder.exit(), 64 << 10);
  return text && decode_exit(*text);
}

}  // namespace

Result<RunningRecord> running_record_in(const TaskFolder& folder) {
  MUSTER_TRY(const std::string text, base::read_file(folder.running(), 4096));
  return decode_running(text);
}

std::vector<RunningTask> running_tasks_in(const fs::path& jobs_folder, const std::string& job_id,
                                          const Node& node) {
  // The id itself may be damaged, and must not lead out of the folder.
  std::vector<RunningTask> found;
  std::error_code error;
  if (!has_letters_of_an_id(job_id)) return found;
  for (const auto& attempt : fs::directory_iterator(jobs_folder / job_id, error)) {
    const std::string number = attempt.path().filename();
    GangId gang{.job_id = job_id};
    const char* const behind = number.data() + number.size();
    const auto [end, failed] = std::from_chars(number.data(), behind, gang.attempt);
    if (failed != std::errc() || end != behind) continue;
    for (const auto& each : fs::directory_iterator(attempt.path(), error)) {
      const TaskFolder folder{each.path()};
      if (!fs::exists(folder.lock(), error) || base::lock_file(folder.lock())) continue;
      RunningTask task{.gang = gang, .task = each.path().filename(), .node = node.name};
      const auto text = base::read_file(folder.plan());
      const auto plan = text ? decode_shim_plan(*text) : Result<ShimPlan>(text.error());
      if (plan) {
        read_devices(*plan, node, task);
        task.job_name = variable_in(plan->inner.environment, "MUSTER_JOB");
        task.project = variable_in(plan->inner.environment, "MUSTER_PROJECT");
      }
      found.push_back(std::move(task));
    }
  }
  return found;
}

std::vector<std::string> jobs_of_shims(const fs::path& proc) {
  std::set<std::string> ids;
  for (const pid_t process : numbered_entries(proc)) {
    // PROGRAM\0JOBS/ID/ATTEMPT/TASK\0. The folder of the jobs may have been moved since.
    const std::string line = read_proc_file(proc / std::to_string(process) / "cmdline");
    const size_t behind_program = std::min(line.find('\0'), line.size());
    const std::string program = line.substr(0, behind_program);
    if (!program.ends_with("muster-shim") || behind_program == line.size()) continue;
    const fs::path task = line.c_str() + behind_program + 1;
    std::string id = task.parent_path().parent_path().filename();
    if (names_a_job(id)) ids.insert(std::move(id));
  }
  return {ids.begin(), ids.end()};
}

std::vector<std::string> unknown_jobs_in(const fs::path& jobs_folder,
                                         const std::function<bool(const std::string&)>& is_known) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(jobs_folder, error)) {
    std::string id = each.path().filename();
    if (names_a_job(id) && !is_known(id)) found.push_back(std::move(id));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// --- the table

ProcessTask& ProcessTasks::add(std::unique_ptr<ProcessTask> task) {
  ProcessTask& added = *task;
  tasks_[added.key] = std::move(task);
  watch_end(added);
  return added;
}

ProcessTask* ProcessTasks::find(const Key& key) const {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : found->second.get();
}

bool ProcessTasks::has_tasks(const GangId& gang) const {
  const auto first = tasks_.lower_bound({gang, ""});
  return first != tasks_.end() && first->first.first == gang;
}

std::optional<Result<RunningRecord>> ProcessTasks::running_shim(const GangId& gang) const {
  for (auto at = tasks_.lower_bound({gang, ""}); at != tasks_.end(); ++at) {
    const auto& [key, task] = *at;
    if (key.first != gang) break;
    if (task->is_starting() || !task->pidfd) continue;
    return running_record_in(folder_of(gang, key.second));
  }
  return std::nullopt;
}

void ProcessTasks::report(const Key& key, TaskNews what) const {
  if (listener_) listener_({.gang = key.first, .task = key.second, .what = std::move(what)});
}

void ProcessTasks::watch_ranks(ProcessTask& task) {
  if (!task.takes_ranks) return;
  const auto& [gang, name] = task.key;
  task.ranks = files_.watch(folder_of(gang, name).generated() / "ranks",
                            [this, key = task.key] { report(key, RanksChanged{}); });
  // Ranks may have signed in before the watch began.
  if (ranks_in(attempt_folder(gang), {name}).empty()) return;
  loop_.post([this, key = task.key] { report(key, RanksChanged{}); });
}

// --- ends

void ProcessTasks::watch_end(ProcessTask& task) {
  task.end_interest =
      loop_.when_readable(task.pidfd.get(), [this, key = task.key] { shim_ended(key); });
}

void ProcessTasks::shim_ended(const Key& key) {
  ProcessTask* const task = find(key);
  if (task == nullptr) return;
  task->end_interest.reset();
  if (task->child) ::waitpid(*task->child, nullptr, WNOHANG);
  task->child.reset();
  if (task->is_starting()) {
    const auto ended_in_start = task->ended_in_start;  // the task may be gone when this returns
    if (!std::exchange(task->has_ended, true)) ended_in_start();
    return;
  }
  auto ended = tasks_.extract(key);  // `key` may be the task's own
  ended.mapped().reset();
  const auto& [gang, name] = ended.key();
  if (task_left_) task_left_(gang);
  report(ended.key(), end_left_in(folder_of(gang, name)));
}

void ProcessTasks::stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) {
  for (const std::string& name : tasks) {
    ProcessTask* const task = find({gang, name});
    if (task == nullptr) continue;
    if (!task->pidfd) {
      task->pending_stop = mode;
      continue;
    }
    // A shim that has just ended cannot be signalled; its end is being reported anyway.
    [[maybe_unused]] const auto sent =
        base::send_signal(task->pidfd, mode == StopMode::kNow ? SIGQUIT : SIGTERM);
  }
}

// --- adoption

AdoptionResult ProcessTasks::adopt(const GangId& gang, const std::string& name) {
  const Key key{gang, name};
  const TaskFolder folder = folder_of(gang, name);
  if (!fs::exists(folder.lock())) return AdoptionResult::kNothing;
  if (base::lock_file(folder.lock())) {
    // The lock was free: no shim holds the task.
    const bool was_held = fs::exists(folder.running()) || has_exit_record(folder);
    if (!was_held) return AdoptionResult::kNothing;
    loop_.post([this, key, folder] { report(key, end_left_in(folder)); });
    return AdoptionResult::kEnded;
  }
  auto task = std::make_unique<ProcessTask>();
  task->key = key;
  ProcessTask& adopted = *task;
  tasks_[key] = std::move(task);
  take_over(adopted);
  return AdoptionResult::kRunning;
}

std::set<int> ProcessTasks::taken_cpus() const {
  std::set<int> taken;
  for (const auto& [key, task] : tasks_) taken.insert(task->cpus.begin(), task->cpus.end());
  return taken;
}

void ProcessTasks::take_over(ProcessTask& task) {
  const TaskFolder folder = folder_of(task.key.first, task.key.second);
  const auto record = running_record_in(folder);
  if (!record) {
    // The shim holds its lock but has not written its pid: it will in a moment, or it ends.
    task.end_interest = loop_.after(kAdoptionPause, [this, key = task.key, folder] {
      ProcessTask* const waiting = find(key);
      if (waiting == nullptr) return;
      if (base::lock_file(folder.lock())) return shim_ended(key);
      take_over(*waiting);
    });
    return;
  }
  auto pidfd = base::open_pidfd(record->pid);
  // The kernel reuses pids: a process that started at another time is not the shim.
  if (!pidfd || start_ticks_of(record->pid) != record->start_ticks) {
    loop_.post([this, key = task.key] { shim_ended(key); });
    return;
  }
  task.pidfd = *std::move(pidfd);
  watch_end(task);
  const auto plan = base::read_file(folder.plan());
  const auto shim = plan ? decode_shim_plan(*plan) : Result<ShimPlan>(plan.error());
  task.takes_ranks = shim && shim->inner.takes_ranks;
  if (shim) task.cpus = shim->inner.limits.cpus;
  watch_ranks(task);
  if (task.pending_stop) stop(task.key.first, {task.key.second}, *task.pending_stop);
}

}  // namespace muster::engine
