// What a task may use of its machine, and how it is held to that.
//
// The kernel holds a task to its limits where Muster may make control groups: TaskGroups makes them
// (version 1 or 2), and the shim starts the task in them. Resource limits (setrlimit) hold each
// process to its open files and file sizes. What neither covers is measured by LimitWatch
// (limit_watch.h), and the task is killed with the reason.
//
// The shim itself stays out of the groups: it must survive an out-of-memory kill to report it.
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
  std::string home;  ///< the folder of the group in which the shim itself stays
  /// File of the folder -> what is written to it, in this order.
  std::vector<std::pair<std::string, std::string>> settings;

  bool operator==(const TaskGroup&) const = default;
};

/// A number that is 0 stands for no limit.
struct TaskLimits {
  int64_t memory_bytes = 0;
  int64_t processes = 0;  ///< threads count, too
  int64_t open_files = 0;
  int64_t file_bytes = 0;
  int64_t scratch_bytes = 0;
  std::vector<std::string> scratch;  ///< the folders whose size counts, as the shim sees them
  std::vector<TaskGroup> groups;
  std::vector<int> cpus;  ///< its processes run on these alone; empty: on any
  /// Its container holds it to its memory and its processes: the shim does not measure these.
  bool is_held_by_container = false;

  /// Whether a control group limits it: "memory" or "pids".
  bool has_group(const std::string& controller) const;

  bool operator==(const TaskLimits&) const = default;
};

/// The control groups of one task. Not thread-safe.
class TaskGroups {
 public:
  explicit TaskGroups(std::vector<TaskGroup> groups) : groups_(std::move(groups)) {}

  /// Makes the groups and sets their limits.
  base::Result<void> make() const;
  /// Moves this process into those that exist; its children start there.
  base::Result<void> enter() const;
  /// Moves this process back to where the shim stays.
  void leave() const;

  /// How many processes of the task the kernel killed for want of memory.
  uint64_t memory_kills() const;
  /// The most memory that the task used; 0: unknown.
  int64_t memory_peak() const;

  /// For groups without processes. Waits a moment for processes that are just ending.
  void remove() const;

 private:
  std::vector<TaskGroup> groups_;
};

/// Sets the resource limits of this process, which its children inherit. `is_own_user`: the task
/// has a user namespace of its own, in which the kernel counts its processes.
base::Result<void> set_resource_limits(const TaskLimits& limits, bool is_own_user);

}  // namespace muster::engine
