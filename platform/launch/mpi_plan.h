// What the tasks of an MPI job get beside what every task gets: the hosts, the keys, and what
// answers the launcher's remote shell.
//
// Pure. Of plan.cc and its parts alone.
#pragma once

#include <string>

#include "launch/gang.h"

namespace muster::launch {

/// Fills shell_hosts, slot_hosts and workers: the workers, and last the launcher where it takes
/// ranks, for mpirun fills hosts from the top.
void list_mpi_hosts(Gang& gang);

/// `folder`: the generated folder as the task sees it.
Variables mpi_variables(const Gang& gang, const std::string& folder);

/// REQUIRES: environment and folder of `plan` are those of the task at `index`.
void add_mpi_parts(const Gang& gang, size_t index, TaskPlan& plan);

/// Of an MPI job, another name for the launcher among the hosts that take ranks; empty: it takes
/// none.
std::string launcher_alias(const Gang& gang);

}  // namespace muster::launch
