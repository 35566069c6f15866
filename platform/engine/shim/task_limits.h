// What a task may use of its machine, and how the task is held to that.
//
// The kernel holds a task to its limits where Muster may make control groups: TaskGroups makes them
// (version 1 or 2), and the shim starts the task in them. Resource limits (setrlimit) hold each
// process to its open files and file sizes, and an affinity mask to the CPUs that it is bound to.
// LimitWatch measures what neither covers, and the shim kills the task with the reason.
//
// The number of processes has two limits. In a user namespace of its own, the resource limit
// RLIMIT_NPROC counts the processes of the task, and the kernel checks it before it copies anything.
// A control group refuses a process after its memory map was copied, with a lock held that each fork
// on the machine takes: a fork bomb at that limit slows down other tasks. So the limit of the group
// is higher by kProcessesBeside, and is reached by tasks without a namespace, and by programs that
// change their user id.
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

/// How many more processes a task may have by its control group than by RLIMIT_NPROC: the processes
/// of Muster that hold it, and those between `muster exec` and its program.
inline constexpr int64_t kProcessesBeside = 32;

/// The limits of a task; 0: no limit.
struct TaskLimits {
  int64_t memory_bytes = 0;
  int64_t processes = 0;  ///< processes and threads
  /// RLIMIT_NPROC of a task with a user namespace of its own. Elsewhere that limit would count the
  /// processes of other tasks of the account, and it does not hold root.
  int64_t user_processes = 0;
  int64_t open_files = 0;
  int64_t file_bytes = 0;
  int64_t scratch_bytes = 0;
  std::vector<std::string> scratch;  ///< paths of the scratch folders, as the shim sees them
  std::vector<TaskGroup> groups;
  std::vector<int> cpus;  ///< the CPUs that its processes may run on; empty: all
  /// The nice value of its processes, so that the processes of Muster get CPU time beside them
  /// where no control group divides it.
  int niceness = 0;
  /// Its container holds it to its memory and its processes: the shim does not measure these.
  bool is_held_by_container = false;

  /// Whether a control group limits the resource. `controller`: "memory", "pids" or "cpu".
  bool has_group(const std::string& controller) const;
  /// The number of processes that a control group allows.
  int64_t processes_of_group() const {
    return user_processes > 0 ? processes + kProcessesBeside : processes;
  }

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
  /// How many processes and threads a control group has refused to the task. The kernel does not
  /// count what RLIMIT_NPROC refuses.
  int64_t refused_processes() const;
  /// How many processes and threads there are now; nullopt: no group counts them.
  std::optional<int64_t> count_processes() const;
  /// The processes in the group that counts them.
  std::vector<pid_t> processes() const;
  /// How many processes the kernel has killed for want of memory.
  int64_t killed_processes() const;

  /// Sends SIGKILL to all processes in the groups. The death of process 1 of a sandbox kills the
  /// others, too, but only when it gets CPU time; until then a fork bomb goes on.
  void kill() const;

  /// Removes the groups. False: some are left, since processes in them are still ending.
  /// REQUIRES: all processes of the task were killed.
  bool remove() const;
  /// Removes the groups, and waits up to half a second for processes that are still ending.
  void remove_soon() const;

 private:
  std::optional<int64_t> number(std::initializer_list<const char*> files,
                                std::string_view name = "") const;

  std::vector<TaskGroup> groups_;
};

/// Sets the resource limits (setrlimit), the nice value and the CPUs of this process, which its
/// children inherit. A process may choose other CPUs unless a control group binds it. REQUIRES: with
/// `user_processes`, this process is in the user namespace of the task.
base::Result<void> set_resource_limits(const TaskLimits& limits);

// --- limits that the shim measures

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
/// alone does not protect other tasks. A control group counts what it refuses. Where RLIMIT_NPROC
/// refuses, the task has most of the processes that it may have, and they spend most of their time in
/// the kernel. Such a task is stopped for a second (SIGSTOP), so that processes that are just being
/// forked let go of their locks, and goes on; if it is a fork bomb still, it is stopped once more,
/// and the third time it has exceeded its limit. Its processes are then killed some at a time: those
/// that end take the same locks.
///
/// Owned and called by the thread that polls.
class LimitWatch {
 public:
  using Steady = std::chrono::steady_clock;

  /// Between two looks for a fork bomb.
  static constexpr std::chrono::milliseconds kForkPause{250};

  LimitWatch() = default;
  /// `root`: all processes below it are the task's. `proc`, `fork_pause`: others in tests.
  LimitWatch(TaskLimits limits, pid_t root, std::filesystem::path proc = "/proc",
             std::chrono::milliseconds fork_pause = kForkPause);

  /// Timeout of poll(2) until the next measurement; -1: there is nothing to measure.
  int milliseconds_to_wait() const;
  /// Measures if a measurement is due. Returns the first limit that the task exceeds, or nullopt.
  std::optional<job::LimitReached> look();

  int64_t memory_peak() const { return memory_peak_; }
  /// The limit of processes, if the task was seen to have as many as it may have. For a task that has
  /// failed: the kernel has most likely refused it more.
  std::optional<job::LimitReached> processes_reached() const;

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
  bool is_forking_at_its_limit(const TaskGroups& groups);
  std::vector<pid_t> current_processes(const TaskGroups& groups);
  void signal_all(const TaskGroups& groups, int signal);
  void go_on(const TaskGroups& groups);
  void end_in_parts(const TaskGroups& groups);

  /// What the processes of the task have used of the CPUs.
  struct Ticks {
    uint64_t system = 0;
    uint64_t user = 0;
  };
  Ticks ticks_of(const std::vector<pid_t>& processes) const;

  TaskLimits limits_;
  pid_t root_ = 0;
  std::filesystem::path proc_;
  std::chrono::milliseconds fork_pause_ = kForkPause;
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
  // Of the last measurement, where no control group counts.
  int64_t measured_processes_ = 0;
  std::vector<pid_t> measured_;
  int64_t processes_peak_ = 0;
  Ticks ticks_;              ///< at the last look, while the task has nearly all its processes
  bool is_stopped_ = false;  ///< all processes have SIGSTOP
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
