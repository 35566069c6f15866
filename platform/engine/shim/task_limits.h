// The limits of a task on its machine, and their enforcement.
//
// The kernel holds a task to its limits where Muster may make control groups: TaskGroups makes them
// (version 1 or 2), and the shim starts the task in them. Resource limits (setrlimit) hold each
// process to its open files and file sizes, and an affinity mask to the CPUs that it is bound to.
// LimitWatch measures what neither covers, ForkWatch finds fork bombs, and the shim kills the task
// with the reason.
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

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::engine {

/// A control group of one task: a folder that the shim makes, and removes when the task has ended.
struct TaskGroup {
  std::string folder;
  std::string home;  ///< the folder of the group from which the shim comes
  /// The folder of the group in which the shim stays while it holds the task, above `folder`; empty:
  /// `home`.
  std::string holder = {};
  /// Files of the folder and the text that is written to each, in this order.
  std::vector<std::pair<std::string, std::string>> settings;

  /// Whether it limits the resource. `controller`: "memory", "pids" or "cpu".
  bool is_of(const std::string& controller) const;

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

/// The groups without the settings that bind the task to its CPUs, and without the groups that have
/// no other settings. Pure.
std::vector<TaskGroup> without_cpus(std::vector<TaskGroup> groups);

/// Sets the resource limits (setrlimit) of this process, which its children inherit. A task does not
/// run without them. REQUIRES: with `user_processes`, this process is in the user namespace of the
/// task.
base::Result<void> set_resource_limits(const TaskLimits& limits);

/// Sets the nice value and the CPUs of this process, which its children inherit. A process may choose
/// other CPUs unless a control group binds it. An error is the first one; the rest is set all the same.
/// A task can run without these: one of its CPUs may be offline.
base::Result<void> set_cpus_and_niceness(const TaskLimits& limits);

}  // namespace muster::engine
