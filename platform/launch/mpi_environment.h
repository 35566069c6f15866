// The variables that point an MPI launcher at the job's hostfile and at the way to its hosts. All
// of them are set for every MPI, for names of one say nothing to another; what would is under the
// answer of `mpirun --version` (MpiChoice).
//
// Pure. Names: Open MPI 4.1's and 5.0's manuals (ompi_info --all), PRRTE 3's prte_info --all; Intel
// MPI's reference of Hydra's environment; MPICH's mpiexec.hydra.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

inline constexpr const char* kLoopback = "lo";

/// What the variables depend on.
struct MpiSite {
  std::string folder;        ///< the generated folder as the task sees it
  std::string remote_shell;  ///< Muster's own; empty: ssh
  /// The interfaces that ranks talk through: a name, or a network; empty: as MPI finds them.
  std::string interfaces;
};

std::map<std::string, std::string> open_mpi_environment(const MpiSite& site);

/// Of ranks that a cluster starts, whatever MPI they belong to. `apart`: some on one node are in
/// tasks of their own.
std::map<std::string, std::string> rank_environment(const MpiSite& site, bool apart);

/// Of Intel MPI and MPICH, whose launcher is Hydra.
std::map<std::string, std::string> hydra_environment(const MpiSite& site);

/// What depends on which MPI it is.
struct MpiQuestion {
  std::vector<std::string> command;        ///< of the launcher
  std::map<std::string, std::string> set;  ///< variables of the user's or the image's, which win
  Reach reach = Reach::kLoopback;
  int slots_per_worker = 1;
};

MpiChoice mpi_choice(const MpiQuestion& question);

}  // namespace muster::launch
