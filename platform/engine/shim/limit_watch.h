// Measures a task against the limits that no control group enforces: memory, the number of
// processes, and the size of its scratch folders; and looks for a fork bomb (fork_watch.h).
//
// Each measurement reads /proc for every process of the task. The memory of a task is the sum of its
// processes' resident memory without files. The quick figure counts memory that processes share for
// each of them. Only if it exceeds the limit, the share of each process is read, which takes the
// kernel a hundred times longer. Between two measurements a task can exceed its limit: by 80 MiB if
// it allocates 1 GiB a second.
//
// Files that a task keeps open count towards its scratch folders even if it has deleted them, or has
// closed the folder that they are in to this process. Folders that are nested so deep that their files
// cannot be counted exceed the limit.
//
// Owned and called by the thread that polls.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/shim/fork_watch.h"
#include "engine/shim/task_limits.h"
#include "engine/shim/task_processes.h"
#include "job/exit_status.h"

namespace muster::engine {

class LimitWatch {
 public:
  using Steady = std::chrono::steady_clock;

  LimitWatch() = default;
  /// `root`: all processes below it are the task's. `proc`, `fork_pause`: others in tests.
  LimitWatch(const TaskLimits& limits, pid_t root, std::filesystem::path proc = "/proc",
             std::chrono::milliseconds fork_pause = ForkWatch::kPause);

  /// Timeout of poll(2) until the next measurement; -1: there is nothing to measure.
  int milliseconds_to_wait() const;
  /// Measures if a measurement is due. Returns the first limit that the task exceeds, or nullopt.
  std::optional<job::LimitReached> look();

  int64_t memory_peak() const { return memory_peak_; }
  /// Whether the last measurement has met folders in the scratch folders that are nested too deep to
  /// be measured.
  bool is_scratch_too_deep() const { return is_scratch_too_deep_; }
  /// The limit of processes, if the task was seen to have as many as it may have. For a task that has
  /// failed: the kernel has most likely refused it more.
  std::optional<job::LimitReached> processes_reached() const;

 private:
  bool watches_memory() const;
  bool watches_processes() const;
  std::optional<job::LimitReached> look_at_processes();
  std::optional<job::LimitReached> look_at_scratch();

  TaskLimits limits_;
  TaskProcesses processes_;
  ForkWatch forks_;
  int64_t memory_peak_ = 0;
  bool measures_shares_ = false;  ///< the quick figure for memory exceeds the limit
  bool is_scratch_too_deep_ = false;
  int64_t measured_processes_ = 0;  ///< processes and threads, at the last measurement
  int64_t processes_peak_ = 0;
  std::optional<Steady::time_point> processes_due_;
  std::optional<Steady::time_point> scratch_due_;
  std::optional<Steady::time_point> forks_due_;
};

}  // namespace muster::engine
