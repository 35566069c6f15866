// The additional parts of tasks of an MPI job: the hosts, the keys, and the server for the
// launcher's remote shell.
//
// Pure. Only for plan.cc and its parts.
#pragma once

#include <string>

#include "launch/gang.h"

namespace muster::launch {

/// Fills shell_hosts, slot_hosts and workers: the workers, and last the launcher if it runs ranks,
/// because mpirun fills hosts from the top.
void list_mpi_hosts(GangContext& gang);

/// `folder`: the generated folder as the task sees it.
Variables mpi_variables(const GangContext& gang, const std::string& folder);

/// REQUIRES: environment and folder of `plan` are those of the task at `index`.
void add_mpi_parts(const GangContext& gang, size_t index, TaskPlan& plan);

/// The files with which a remote shell reaches the other tasks. With many hosts, some MPIs start
/// daemons from other hosts, so every task has the files. Empty for other kinds.
std::vector<PlannedFile> mpi_reach_files(const GangContext& gang, const std::string& folder);

}  // namespace muster::launch
