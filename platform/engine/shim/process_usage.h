// What a tree of processes takes of its machine, from /proc.
//
// CPU time: what its processes have used since the last look, and what those have that came or went
// meanwhile: of a process that is gone its parent tells, or whoever reaped it in its stead. Only
// what nobody reaped (SIGCHLD ignored) and that came and went between two looks escapes.
//
// Memory: the proportional set size (PSS), of which pages that several processes share count once;
// the sum of what each has resident would count a data loader's workers, forked from a large
// process, as often as there are. The kernel walks the page tables for it, so it is read anew only
// of processes that have grown or shrunk, and of all of them when one has come or gone.
//
// A process that has a control group of its own would be better measured there; this is for tasks
// that share their server's.
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

/// Whoever measures again and again rests so many times as long as it worked: measuring takes at
/// most a fiftieth of a CPU.
inline constexpr int kRestForWork = 50;

/// What tells processes apart: the kernel gives numbers anew.
struct ProcessKey {
  pid_t pid = 0;
  uint64_t start_ticks = 0;

  auto operator<=>(const ProcessKey&) const = default;
};

struct ProcessState {
  pid_t parent = 0;
  uint64_t own_ticks = 0;     ///< CPU time that it has used
  uint64_t reaped_ticks = 0;  ///< and those children that it has waited for, with theirs
  uint64_t threads = 1;
  uint64_t resident_pages = 0;

  bool operator==(const ProcessState&) const = default;
};

/// /proc/PID/stat. nullopt: it is no such text.
std::optional<std::pair<ProcessKey, ProcessState>> parse_stat(std::string_view text);

using Processes = std::map<ProcessKey, ProcessState>;

/// The CPU time, in clock ticks, that was used between two looks. Never negative.
///
/// Pure.
uint64_t ticks_between(const Processes& before, const Processes& now);

class ProcessUsage {
 public:
  struct Usage {
    std::chrono::nanoseconds cpu{0};  ///< since the last look, or since the tree's processes began
    int64_t memory_bytes = 0;
    std::vector<pid_t> processes;
  };

  /// All below `root`, but for `left_out` and what is below that. `proc` is another in tests.
  ProcessUsage(pid_t root, pid_t left_out, std::filesystem::path proc = "/proc");

  Usage look();

 private:
  /// Memory as it was when it was last read.
  struct Memory {
    uint64_t resident_pages = 0;
    int64_t bytes = 0;
  };

  Processes tree() const;
  int64_t memory_of(const Processes& processes);

  pid_t root_;
  pid_t left_out_;
  std::filesystem::path proc_;
  Processes last_;
  std::map<ProcessKey, Memory> memory_;
};

}  // namespace muster::engine
