// The CPU time and memory of a tree of processes, from /proc. For tasks without a control group of
// their own, which would measure better.
//
// CPU time: the time of the tree's processes since the last look, including processes that have
// started or ended meanwhile. The time of an ended process is in the counters of the process that
// has reaped it. Only a process that was never reaped (its parent ignores SIGCHLD), and that lived
// between two looks, is missed.
//
// Memory: the proportional set size (PSS), which counts a page once however many processes share
// it. The sum of resident sizes would count the memory of a data loader once for each of its forked
// workers. The kernel walks page tables to compute the PSS. So it is read again only for processes
// whose resident size has changed, and for all processes when one has started or ended.
//
// Reading the PSS can block: it takes a second for a hundred gigabytes, and it waits while the process
// changes its mappings, for example on a network file system that hangs. The other files of /proc that
// are read here do not wait for a process or a file system.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::engine {

/// Pause after a measurement, in multiples of the time that it took: measuring takes at most a
/// fiftieth of a CPU.
inline constexpr int kRestForWork = 50;

/// Identifies a process. The pid alone is not enough: the kernel reuses pids.
struct ProcessKey {
  pid_t pid = 0;
  uint64_t start_ticks = 0;

  auto operator<=>(const ProcessKey&) const = default;
};

struct ProcessState {
  pid_t parent = 0;
  uint64_t own_ticks = 0;     ///< CPU time of the process itself
  uint64_t system_ticks = 0;  ///< the part of it that was spent in the kernel
  uint64_t reaped_ticks = 0;  ///< CPU time of the children that it has reaped, and of theirs
  uint64_t threads = 1;
  uint64_t resident_pages = 0;
  uint64_t terminal = 0;  ///< the device number of its controlling terminal; 0: it has none

  bool operator==(const ProcessState&) const = default;
};

/// Parses the text of /proc/PID/stat. nullopt: the text is malformed.
std::optional<std::pair<ProcessKey, ProcessState>> parse_stat(std::string_view text);

using Processes = std::map<ProcessKey, ProcessState>;

/// The CPU time that was used between two looks, in clock ticks. Never negative.
///
/// Pure.
uint64_t ticks_between(const Processes& before, const Processes& now);

/// The memory of a process in bytes: its PSS; if this account may not read that, its private resident
/// memory. Can block.
int64_t proportional_memory(const std::filesystem::path& proc, pid_t pid);

class ProcessUsage {
 public:
  /// What a look finds without blocking.
  struct Look {
    std::chrono::nanoseconds cpu{0};  ///< since the last look, or since the processes started
    std::vector<pid_t> processes;
    std::vector<pid_t> unmeasured;  ///< their memory must be read again
  };

  struct Usage {
    std::chrono::nanoseconds cpu{0};  ///< since the last look, or since the processes started
    int64_t memory_bytes = 0;
    std::vector<pid_t> processes;
  };

  /// Measures all processes below `root`, except `left_out` and those below it. `proc`: another
  /// folder in tests.
  ProcessUsage(pid_t root, pid_t left_out, std::filesystem::path proc = "/proc");

  Look look_at_processes();
  /// The memory of processes that the last look found to be unmeasured.
  void measured(const std::map<pid_t, int64_t>& bytes);
  /// Of all processes that the last look found.
  int64_t memory_bytes() const;

  /// All at once. Can block.
  Usage look();

 private:
  /// The memory of a process when it was last read.
  struct Memory {
    uint64_t resident_pages = 0;
    int64_t bytes = 0;
  };

  Processes tree() const;
  std::vector<pid_t> forget_stale_memory();

  pid_t root_;
  pid_t left_out_;
  std::filesystem::path proc_;
  Processes last_;
  std::map<ProcessKey, Memory> memory_;
};

}  // namespace muster::engine
