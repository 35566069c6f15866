// The variables that direct an MPI launcher to the job's hostfile and to its hosts. The variables
// of all MPIs are set, because each MPI ignores the names of the others; variables for which this
// does not hold depend on `mpirun --version` (MpiChoice).
//
// Pure. Names: the manuals of Open MPI 4.1 and 5.0 (ompi_info --all), PRRTE 3's prte_info --all;
// Intel MPI's reference of Hydra's environment; MPICH's mpiexec.hydra.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

inline constexpr const char* kLoopback = "lo";

/// The inputs of these variables.
struct MpiSite {
  std::string folder;        ///< the generated folder as the task sees it
  std::string remote_shell;  ///< Muster's own remote shell; empty: ssh
  /// The interfaces for the ranks' traffic: a name or a network; empty: MPI's own choice.
  std::string interfaces;
};

std::map<std::string, std::string> open_mpi_environment(const MpiSite& site);

/// For ranks that a cluster starts, whatever their MPI. `apart`: some ranks on the same node are in
/// different tasks.
std::map<std::string, std::string> rank_environment(const MpiSite& site, bool apart);

/// For Intel MPI and MPICH, whose launcher is Hydra.
std::map<std::string, std::string> hydra_environment(const MpiSite& site);

/// The inputs of variables that depend on the MPI.
struct MpiQuestion {
  std::vector<std::string> command;  ///< of the launcher
  /// Variables of the user or the image, which override these.
  std::map<std::string, std::string> set;
  Reach reach = Reach::kLoopback;
  int slots_per_worker = 1;
};

MpiChoice mpi_choice(const MpiQuestion& question);

}  // namespace muster::launch
