// The rank census of those MPIs whose ranks do not sign in: MPICH's and Intel's launcher (Hydra)
// has a proxy on each host, and the proxy starts the ranks. They are its children, and say in their
// environment which they are: PMI_RANK of PMI_SIZE.
//
// They are looked for below the process that looks, often while something was just started there
// and then seldom. A rank that is over sooner than it is looked for is not found: the census is of
// worlds that train, which live longer.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/rank_files.h"

namespace muster::engine {

/// What an environment, as /proc/PID/environ has it, says of the rank that it belongs to.
///
/// Pure.
std::optional<SignedRank> rank_of_environment(std::string_view environment);

/// The ranks that the proxies below `root` have started. `proc`: another in tests.
std::vector<SignedRank> ranks_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// When to look, and what to write down. Not thread-safe.
class RankWatch {
 public:
  using Steady = std::chrono::steady_clock;

  /// `folder`: where ranks sign in (rank_files.h).
  explicit RankWatch(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Something was started that may start ranks.
  void started(Steady::time_point now);

  /// When to look again; nullopt: nothing was ever started.
  std::optional<Steady::time_point> due() const { return due_; }

  /// Looks below this process, and signs in who is new, and as kHangs that a rank hangs.
  void look();

 private:
  std::filesystem::path folder_;
  std::optional<Steady::time_point> started_;
  std::optional<Steady::time_point> due_;
  std::map<int, int> signed_in_;
  std::map<pid_t, Steady::time_point> hanging_;  ///< since when
};

/// Those of `ranks_below` that wait in MPI_Finalize and can never leave it. Of MPICH over UCX and
/// TCP a rank that leaves waits for an answer of each rank that it has sent something to, and ranks
/// that have left answer no more: they wait in a barrier of the process manager (a read of PMI_FD).
/// A question that one has not read is 25 bytes long; 9 bytes are the farewell of another rank.
std::vector<pid_t> hanging_below(pid_t root, const std::filesystem::path& proc = "/proc");

/// How long to wait after a look that took `cost`, `age` after the last start.
///
/// Pure.
std::chrono::nanoseconds pause_after(std::chrono::nanoseconds age, std::chrono::nanoseconds cost);

}  // namespace muster::engine
