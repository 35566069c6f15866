// What a task may use of its machine, and how the task is held to that.
//
// The kernel holds a task to its limits where Muster may make control groups: TaskGroups makes them
// (version 1 or 2), and the shim starts the task in them. Resource limits (setrlimit) hold each
// process to its open files and file sizes. LimitWatch measures what neither covers, and the shim
// kills the task with the reason.
//
// The shim itself stays out of the groups: it must survive an out-of-memory kill to report it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::engine {

// --- limits that the kernel enforces

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

// --- limits that the shim measures
//
// Measures a task against the limits that no control group holds: memory, the number of processes,
// and the size of its scratch folders.
//
// A measurement reads /proc for each process of the task. The memory of a task is what its
// processes have resident without files; memory that they share counts once for each. Between two
// looks a task can exceed its limit: by 80 MiB where a program allocates 1 GiB a second.
//
// Owned and called by one thread, the one that polls.

/// A limit that a task has exceeded.
struct Excess {
  enum class Kind { kMemory, kProcesses, kScratch };
  Kind kind = Kind::kMemory;
  int64_t used = 0;
  int64_t limit = 0;

  bool operator==(const Excess&) const = default;
};

/// "it had 120 processes and threads; the limit is 100 (tasks.processes)".
std::string sentence_of(const Excess& excess);

/// "its memory limit is 100Mi, its peak was 99.9Mi". `peak` 0: unknown.
std::string memory_sentence(int64_t peak, int64_t limit);

class LimitWatch {
 public:
  using Steady = std::chrono::steady_clock;

  LimitWatch() = default;
  /// `root`: all processes below it are the task's. `proc` is another folder in tests.
  LimitWatch(TaskLimits limits, pid_t root, std::filesystem::path proc = "/proc");

  /// How long poll(2) may wait at most; -1: nothing is watched.
  int milliseconds_to_wait() const;
  /// Measures what is due. The first limit that is exceeded, or nullopt.
  std::optional<Excess> look();

  int64_t memory_peak() const { return memory_peak_; }

 private:
  bool watches_processes() const;
  std::optional<Excess> look_at_processes();
  std::optional<Excess> look_at_scratch();

  TaskLimits limits_;
  pid_t root_ = 0;
  std::filesystem::path proc_;
  int64_t memory_peak_ = 0;
  std::optional<Steady::time_point> processes_due_;
  std::optional<Steady::time_point> scratch_due_;
};

// --- kills by the kernel
//
// How often the kernel's out-of-memory killer struck: two looks tell whether it did in between.
//
// Reads /proc and /sys. `root`: where they lie, for tests.

/// On this machine (/proc/vmstat).
uint64_t kills_on_machine(const std::filesystem::path& root = "/");

/// In the control group of this process: version 2's memory.events, or the
/// memory.oom_control of version 1. nullopt: it cannot be read there.
std::optional<uint64_t> kills_in_group(const std::filesystem::path& root = "/");

/// In a container the machine's count would tell of its neighbours, too.
inline uint64_t kills_in_container(const std::filesystem::path& root = "/") {
  const auto in_group = kills_in_group(root);
  return in_group ? *in_group : kills_on_machine(root);
}

}  // namespace muster::engine
