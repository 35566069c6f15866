// How the ranks of an MPI program sign in: the file N in the folder "ranks" of what is generated
// for the task holds the size of the world. Open MPI's ranks write it themselves (the script of
// launch/scripts.h); for others rank_watch.h does.
//
// A command that a remote shell runs in the task signs in as the file kReached: some launchers
// start processes that belong to no MPI.
//
// The folder is the task's own, so a file there may be anything: no pipe is waited for, no link is
// followed, no device is opened.
//
// I/O; thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine {

/// In the place of a rank: a remote shell has run a command there. (launch/scripts.cc, engine/rsh)
inline constexpr int kReached = -1;
/// In the place of a rank: one of MPICH waits in MPI_Finalize for ranks that wait for its answer.
inline constexpr int kHangs = -2;

struct SignedRank {
  int rank = 0;        ///< or kReached, kHangs
  int world_size = 0;  ///< 0: it does not say

  bool operator==(const SignedRank&) const = default;
};

/// In no order; those beyond 65'536 files are not looked at. Empty where there is no such folder.
std::vector<SignedRank> ranks_in(const std::filesystem::path& folder);

/// The one of the file `name`. nullopt: it is none.
std::optional<SignedRank> rank_in(const std::filesystem::path& folder, const std::string& name);

/// In one write, so whoever watches the folder reads it whole.
base::Result<void> sign_in(const std::filesystem::path& folder, const SignedRank& rank);

}  // namespace muster::engine
