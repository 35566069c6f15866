// Measures a task against the limits that no control group holds: memory, the number of processes,
// and the size of its scratch folders.
//
// A measurement reads /proc for each process of the task. The memory of a task is what its
// processes have resident without files; memory that they share counts once for each. Between two
// looks a task can exceed its limit: by 80 MiB where a program allocates 1 GiB a second.
//
// Owned and called by one thread, the one that polls.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/shim/task_limits.h"

namespace muster::engine {

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

}  // namespace muster::engine
