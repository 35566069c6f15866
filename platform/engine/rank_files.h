// The files by which the ranks of an MPI program are counted: rank N writes the size of the world
// to the file N in the folder "ranks" of the task's generated folder. Open MPI's ranks write it
// themselves (the script in launch/scripts.h); for other MPIs shim/ranks.h does.
//
// A command that a remote shell runs in the task writes the file kReached, because some launchers
// start processes that belong to no MPI.
//
// The task can write to the folder, so a file there may be anything: no pipe is waited for, no link
// is followed, and no device is opened.
//
// I/O; thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine {

/// Instead of a rank: a remote shell has run a command in the task (launch/scripts.cc, engine/rsh).
inline constexpr int kReached = -1;
/// Instead of a rank: a rank of MPICH waits in MPI_Finalize for ranks that wait for its answer.
inline constexpr int kHangs = -2;

struct SignedRank {
  int rank = 0;        ///< or kReached, kHangs
  int world_size = 0;  ///< 0: unknown

  bool operator==(const SignedRank&) const = default;
};

/// The ranks in the folder, in no order, from at most 65'536 files. Empty for a missing folder.
std::vector<SignedRank> ranks_in(const std::filesystem::path& folder);

/// The rank of the file `name`. nullopt: not a valid file of a rank.
std::optional<SignedRank> rank_in(const std::filesystem::path& folder, const std::string& name);

/// Writes the file in one write, so that a watcher of the folder never reads part of it.
base::Result<void> sign_in(const std::filesystem::path& folder, const SignedRank& rank);

}  // namespace muster::engine
