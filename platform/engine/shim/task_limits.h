// What a task may use of its machine, and how the task is held to that.
//
// The kernel holds a task to its limits where Muster may make control groups: TaskGroups makes them
// (version 1 or 2), and the shim starts the task in them. Resource limits (setrlimit) hold each
// process to its open files and file sizes, and an affinity mask to the CPUs that it is bound to.
// LimitWatch measures what neither covers, and the shim kills the task with the reason.
//
// The shim itself stays out of the groups: it must survive an out-of-memory kill to report it. Its CPU
// time is the task's, though, or a task that prints without a pause would take time from other tasks
// through its shim. So the group for CPU time has a group for the task in it, beside which the shim
// runs (TaskGroup::holder).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "job/exit_status.h"

namespace muster::engine {

// --- limits that the kernel enforces

/// A control group of one task: a folder that the shim makes, and removes when the task has ended.
struct TaskGroup {
  std::string folder;
  std::string home;  ///< the folder of the group from which the shim comes
  /// The folder of the group in which the shim stays while it holds the task, above `folder`; empty:
  /// `home`.
  std::string holder = {};
  /// Files of the folder and the text that is written to each, in this order.
  std::vector<std::pair<std::string, std::string>> settings;

  bool operator==(const TaskGroup&) const = default;
};

/// The limits of a task; 0: no limit.
struct TaskLimits {
  int64_t memory_bytes = 0;
  int64_t processes = 0;  ///< processes and threads
  int64_t open_files = 0;
  int64_t file_bytes = 0;
  int64_t scratch_bytes = 0;
  std::vector<std::string> scratch;  ///< paths of the scratch folders, as the shim sees them
  std::vector<TaskGroup> groups;
  std::vector<int> cpus;  ///< the CPUs that its processes may run on; empty: all
  /// Its container holds it to its memory and its processes: the shim does not measure these.
  bool is_held_by_container = false;

  /// Whether a control group limits the resource. `controller`: "memory" or "pids".
  bool has_group(const std::string& controller) const;

  bool operator==(const TaskLimits&) const = default;
};

/// The control groups of one task. Not thread-safe.
class TaskGroups {
 public:
  explicit TaskGroups(std::vector<TaskGroup> groups) : groups_(std::move(groups)) {}

  /// Makes the groups and sets their limits.
  base::Result<void> make() const;
  /// Moves this process into the groups that exist; its children start there.
  base::Result<void> enter() const;
  /// Moves this process to the groups in which the shim holds the task.
  void leave() const;
  /// Moves this process back to where it came from, so that remove() can remove all groups.
  void go_home() const;

  /// The limit at which the kernel killed processes of the task for want of memory, or refused it
  /// more processes. A bound of 0: the limit of a group above the task's.
  std::optional<job::LimitReached> reached(const TaskLimits& limits) const;
  /// How many processes and threads the kernel has refused to the task.
  int64_t refused_processes() const;
  /// How many processes the kernel has killed for want of memory.
  int64_t killed_processes() const;

  /// Sends SIGKILL to all processes in the groups. The death of process 1 of a sandbox kills the
  /// others, too, but only when it gets CPU time; until then a fork bomb goes on.
  void kill() const;

  /// Removes the groups. Waits a moment for processes that are just ending. REQUIRES: all processes
  /// of the task were killed.
  void remove() const;

 private:
  std::optional<int64_t> number(std::initializer_list<const char*> files,
                                std::string_view name = "") const;

  std::vector<TaskGroup> groups_;
};

/// Sets the resource limits (setrlimit) and the CPUs of this process, which its children inherit. A
/// process may choose other CPUs unless a control group binds it. `is_own_user`: the task has a user
/// namespace of its own. Only then does the kernel count the task's processes apart from the other
/// processes of the account, and only then is their number limited.
base::Result<void> set_resource_limits(const TaskLimits& limits, bool is_own_user);

// --- limits that the shim measures
//

/// Measures a task against the limits that no control group enforces: memory, the number of
/// processes, and the size of its scratch folders.
///
/// Each measurement reads /proc for every process of the task. The memory of a task is the sum of
/// its processes' resident memory without files. The quick figure counts memory that processes share
/// for each of them. Only if it exceeds the limit, the share of each process is read, which takes
/// the kernel a hundred times longer. Between two measurements a task can exceed its limit: by 80 MiB
/// if it allocates 1 GiB a second.
///
/// Files that a task has deleted and keeps open count towards its scratch folders.
///
/// A task that has all its processes and asks for more without a pause is a fork bomb, and so is one
/// whose processes are killed for want of memory all the time, since new ones take their place. Its
/// processes keep locks of the kernel for which each new process of the machine waits, so the limit
/// alone does not protect other tasks.
///
/// Owned and called by the thread that polls.
class LimitWatch {
 public:
  using Steady = std::chrono::steady_clock;

  LimitWatch() = default;
  /// `root`: all processes below it are the task's. `proc`: another folder in tests.
  LimitWatch(TaskLimits limits, pid_t root, std::filesystem::path proc = "/proc");

  /// Timeout of poll(2) until the next measurement; -1: there is nothing to measure.
  int milliseconds_to_wait() const;
  /// Measures if a measurement is due. Returns the first limit that the task exceeds, or nullopt.
  std::optional<job::LimitReached> look();

  int64_t memory_peak() const { return memory_peak_; }

 private:
  struct Process {
    pid_t pid = 0;
    std::string status;  ///< /proc/PID/status
  };

  bool watches_memory() const;
  bool watches_processes() const;
  std::optional<job::LimitReached> look_at_processes();
  std::optional<job::LimitReached> look_at_scratch();
  std::vector<Process> processes();
  void add_processes_beside(std::vector<Process>& all);
  std::optional<job::LimitReached> look_at_forks();

  TaskLimits limits_;
  pid_t root_ = 0;
  std::filesystem::path proc_;
  int64_t memory_peak_ = 0;
  std::set<pid_t> strangers_;  ///< processes that are not in the task's sandbox
  int looks_beside_ = 0;
  bool measures_shares_ = false;  ///< the quick figure for memory exceeds the limit
  std::optional<Steady::time_point> processes_due_;
  std::optional<Steady::time_point> scratch_due_;
  std::optional<Steady::time_point> forks_due_;
  int64_t refused_ = 0;    ///< processes, until the last look
  int64_t killed_ = 0;     ///< processes, until the last look
  int looks_at_bomb_ = 0;  ///< one after the other that found one
};

// --- kills by the kernel
//
// How many processes the kernel's out-of-memory killer has killed so far. Two calls show whether it
// killed any process between them. `root`: the folder with /proc and /sys, for tests.

/// The kills on this machine (/proc/vmstat).
uint64_t kills_on_machine(const std::filesystem::path& root = "/");

/// The kills in the control group of this process: memory.events of version 2, or
/// memory.oom_control of version 1. nullopt: neither can be read.
std::optional<uint64_t> kills_in_group(const std::filesystem::path& root = "/");

/// The most memory that the control group of this process has used; 0: unknown.
int64_t memory_peak_of_group(const std::filesystem::path& root = "/");

/// The kills in this container, for process 1 of a container: the machine's count would include
/// other containers.
inline uint64_t kills_in_container(const std::filesystem::path& root = "/") {
  const auto in_group = kills_in_group(root);
  return in_group ? *in_group : kills_on_machine(root);
}

}  // namespace muster::engine
