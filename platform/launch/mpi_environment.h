// The variables that point an MPI launcher at the job's hostfile and keys.
//
// Pure. Names: Open MPI 4.1's and 5.0's manuals (ompi_info --all), PRRTE 3's prte_info; Intel MPI's
// reference of Hydra's environment; MPICH's mpiexec.hydra.
#pragma once

#include <map>
#include <string>

namespace muster::launch {

/// `folder`: the generated folder as the task sees it.
std::map<std::string, std::string> open_mpi_environment(const std::string& folder);

/// Of Intel MPI and MPICH, whose launcher is Hydra.
std::map<std::string, std::string> hydra_environment(const std::string& folder);

}  // namespace muster::launch
