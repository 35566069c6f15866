// The control groups of one task: they are created and entered when the task starts, count the
// processes that the kernel has refused or killed, and are removed when the task has ended.
// Versions 1 and 2.
//
// I/O on the files of the groups. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/shim/task_limits.h"
#include "job/exit_status.h"

namespace muster::engine {

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

  /// The limit at which the kernel killed processes of the task for lack of memory, or refused it
  /// more processes. A bound of 0: the limit of a group above the task's.
  std::optional<job::LimitReached> reached(const TaskLimits& limits) const;
  /// How many processes and threads a control group has refused to the task. The kernel does not
  /// count what RLIMIT_NPROC refuses.
  int64_t refused_processes() const;
  /// How many processes and threads there are now; nullopt: no group counts them.
  std::optional<int64_t> count_processes() const;
  /// The processes in the group that counts them.
  std::vector<pid_t> processes() const;
  /// The number of processes that the kernel has killed for lack of memory.
  int64_t killed_processes() const;

  /// Sends SIGKILL to all processes in the groups. The death of process 1 of a sandbox kills the
  /// others, too, but only when it gets CPU time; until then a fork bomb continues.
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
