// Detects fork bombs among tasks: programs that keep requesting processes at their limit, and
// programs whose processes are continuously killed for lack of memory and replaced. The limits
// alone do not protect other tasks from them: their processes hold kernel locks for which every new
// process of the machine waits.
//
// The criterion is that processes are refused, not that there are many or that they keep the kernel
// busy: a parallel build, a loop of short commands and a pool of threads that copies files do both.
//
//   - A control group counts what it refuses, and what is killed in it.
//   - The kernel does not count what RLIMIT_NPROC refuses. If the task has nearly all its processes and
//     a quarter of them need a CPU, it is stopped for some hundredths of a second (SIGSTOP). A
//     process stops when it leaves the kernel, and /proc/PID/syscall then has the system call that it leaves.
//     In a fork bomb at its limit, that is fork() or clone() for most of them. In a program that asks
//     for threads, up to four fifths wait for the lock of pthread_create() instead, and of the others
//     most leave clone(). With short commands, only the processes that start them leave it, and
//     children that have not had a CPU yet, which do not count. A task that was examined in vain is
//     left alone for longer and longer, up to kLongestTrust.
//
// A fork bomb is stopped for a second, so that processes that are being forked release their locks,
// and is then continued. If it is still a fork bomb, it is stopped once more. The third time it has
// exceeded its limit: its processes are killed, some at a time, because ending processes take the
// same locks.
//
// Where /proc/PID/syscall and /proc/PID/schedstat cannot be read, only refusals by control groups are
// found.
//
// Owned and called by the thread that polls.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/shim/task_groups.h"
#include "engine/shim/task_limits.h"
#include "engine/shim/task_processes.h"
#include "job/exit_status.h"

namespace muster::engine {

/// The states of the threads of a task.
struct ThreadStates {
  int alive = 0;     ///< all that have not ended
  int runnable = 0;  ///< run, or wait for a CPU or for a lock or a disk
  int stopped = 0;   ///< by a signal
  int forking = 0;   ///< of `stopped`: have run, and leave fork(), vfork(), clone() or clone3()
  /// Of `stopped`, in programs with several threads: wait in, or leave, what pthread_create() calls
  /// besides clone3().
  int beside = 0;

  bool operator==(const ThreadStates&) const = default;
};

/// Of at most some hundred threads, which are spread over all of `processes`.
ThreadStates thread_states_of(const std::filesystem::path& proc,
                              const std::vector<pid_t>& processes);

class ForkWatch {
 public:
  using Steady = std::chrono::steady_clock;

  /// Between two looks.
  static constexpr std::chrono::milliseconds kPause{250};
  static constexpr std::chrono::milliseconds kLongestTrust{5000};

  ForkWatch() = default;
  /// `pause`: another in tests.
  explicit ForkWatch(TaskLimits limits, std::chrono::milliseconds pause = kPause);

  /// Whether the task has limits of which refusals can be seen.
  bool is_needed() const;

  /// `has`: how many processes and threads were measured last, where no control group counts them.
  /// Returns the limit that the task exceeds, with most of its processes killed.
  std::optional<job::LimitReached> look(TaskProcesses& processes, int64_t has);
  /// Until the next look.
  std::chrono::milliseconds pause() const;

  /// The most processes and threads that were seen.
  int64_t peak() const { return peak_; }

 private:
  enum class State {
    kWatching,
    kExamining,  ///< all processes have SIGSTOP, until enough of them have stopped
    kPausing,    ///< a fork bomb is stopped for a second
  };

  std::optional<job::LimitReached> watch(TaskProcesses& processes, int64_t has);
  std::optional<job::LimitReached> examine(TaskProcesses& processes);
  std::optional<job::LimitReached> strike(TaskProcesses& processes, job::Limit limit);
  bool has_nearly_all(int64_t has);
  void trust_for_a_while();
  std::vector<pid_t> current_processes(TaskProcesses& processes) const;
  void signal_all(TaskProcesses& processes, int signal) const;
  void go_on(TaskProcesses& processes);
  void end_in_parts(TaskProcesses& processes) const;

  TaskLimits limits_;
  TaskGroups groups_{{}};
  std::chrono::milliseconds pause_ = kPause;
  State state_ = State::kWatching;
  int64_t peak_ = 0;
  int64_t refused_ = 0;   ///< processes, until the last look
  int64_t killed_ = 0;    ///< processes, until the last look
  int strikes_ = 0;       ///< looks that found a fork bomb, one after the other
  int examinations_ = 0;  ///< looks at a task that is being stopped
  std::chrono::milliseconds trust_{0};
  Steady::time_point trusted_until_;
};

}  // namespace muster::engine
