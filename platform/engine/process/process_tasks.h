// The tasks of this machine, each held by a shim: the record of each task, the detection of its
// end, and the adoption of tasks that an earlier server started.
//
// A shim is watched by its pidfd. It also holds a lock on the task's folder: a server that starts
// again detects by the lock whether the task runs (docs/decisions/0002-shim-and-lock.md).
//
// On the loop's thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/engine.h"
#include "engine/folder/file_watch.h"
#include "engine/process/sandbox.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// A task with a shim.
struct ProcessTask {
  std::pair<GangId, std::string> key;
  std::optional<pid_t> child;  ///< set if the shim is a child of this process, which must reap it
  base::UniqueFd pidfd;        ///< of the shim; empty until an adopted shim has written its pid
  /// Pipe on which the shim reports its start, and that its port answers; empty once nothing more is
  /// to be reported.
  base::UniqueFd status;
  std::string report;                    ///< read from `status` so far
  std::vector<FileState> machine_files;  ///< before the sandbox was made
  std::string address;
  int ssh_port = 0;
  bool takes_ranks = false;
  std::vector<int> cpus;        ///< to which it is bound; empty: to none
  bool has_network = false;     ///< the gang's own: the shim itself checks whether its port answers
  std::shared_ptr<void> ranks;  ///< watches the folder in which ranks sign in
  /// Set until the start of the whole gang is settled: called when the shim ends before that.
  std::function<void()> ended_in_start;
  bool has_ended = false;                ///< the shim has ended; its start is not settled yet
  std::optional<StopMode> pending_stop;  ///< a stop that arrived before `pidfd` was known
  std::shared_ptr<void> probe;           ///< connects to the ssh port until it greets
  base::EventLoop::Interest status_interest;
  base::EventLoop::Interest end_interest;

  bool is_starting() const { return ended_in_start != nullptr; }
};

class ProcessTasks {
 public:
  using Key = std::pair<GangId, std::string>;

  /// `jobs_folder`: contains JOB/ATTEMPT/TASK for each task.
  ProcessTasks(base::EventLoop& loop, std::filesystem::path jobs_folder)
      : loop_(loop), jobs_folder_(std::move(jobs_folder)), files_(loop) {}

  TaskFolder folder_of(const GangId& gang, std::string_view task) const {
    return {attempt_folder(gang) / task};
  }
  std::filesystem::path attempt_folder(const GangId& gang) const {
    return jobs_folder_ / gang.job_id / std::to_string(gang.attempt);
  }

  /// Adds a task whose shim was just started, and watches for its end.
  ProcessTask& add(std::unique_ptr<ProcessTask> task);
  /// Nothing if there is no such task. A reference is valid until the loop's next turn.
  ProcessTask* find(const Key& key) const;
  /// Forgets a task without a report; its shim has ended.
  void forget(const Key& key) { tasks_.erase(key); }
  bool has_tasks(const GangId& gang) const;
  /// The CPUs to which tasks are bound.
  std::set<int> taken_cpus() const;
  /// The shim of one of the gang's tasks that are up; nullopt: no task of the gang is up.
  std::optional<Result<RunningRecord>> running_shim(const GangId& gang) const;

  /// The start of a task is settled: reports changes of its ranks from now on.
  void watch_ranks(ProcessTask& task);
  /// Reports the end of a task whose shim has ended, or passes it to the task's start.
  void shim_ended(const Key& key);
  void stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode);
  /// See Engine::adopt().
  AdoptionResult adopt(const GangId& gang, const std::string& name);

  void set_listener(Engine::Listener listener) { listener_ = std::move(listener); }
  bool has_listener() const { return listener_ != nullptr; }
  void report(const Key& key, TaskNews what) const;
  /// `left`: called when a task has ended and was removed from the table, before the report.
  void when_task_left(std::function<void(const GangId&)> left) { task_left_ = std::move(left); }

  FileWatch& files() { return files_; }

 private:
  void watch_end(ProcessTask& task);
  void take_over(ProcessTask& task);

  base::EventLoop& loop_;
  std::filesystem::path jobs_folder_;
  FileWatch files_;
  std::map<Key, std::unique_ptr<ProcessTask>> tasks_;
  Engine::Listener listener_;
  std::function<void(const GangId&)> task_left_;
};

/// The record that a shim writes once its task runs.
Result<RunningRecord> running_record_in(const TaskFolder& folder);

/// The tasks of all attempts of the job whose shim is alive, with the GPUs of `node` that each has.
/// For a job whose record in the store cannot be read: the folders that the shims keep still show
/// what the job uses. `job_id` may be damaged: a text that is not a job's id has no tasks.
///
/// I/O; thread-safe.
std::vector<RunningTask> running_tasks_in(const std::filesystem::path& jobs_folder,
                                          const std::string& job_id, const Node& node);

/// The ids of the jobs to which shims on this machine belong, by their command lines. Any process can
/// feign one: running_tasks_in() has the locks. `proc`: /proc, or another folder in tests. I/O.
std::vector<std::string> jobs_of_shims(const std::filesystem::path& proc);

/// The ids of the jobs that have a folder there, and for which `is_known` returns false. I/O.
std::vector<std::string> unknown_jobs_in(
    const std::filesystem::path& jobs_folder,
    const std::function<bool(const std::string& job_id)>& is_known);

}  // namespace muster::engine
