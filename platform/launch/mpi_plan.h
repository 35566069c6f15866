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
void list_mpi_hosts(GangContext& gang);

/// `folder`: the generated folder as the task sees it.
Variables mpi_variables(const GangContext& gang, const std::string& folder);

/// REQUIRES: environment and folder of `plan` are those of the task at `index`.
void add_mpi_parts(const GangContext& gang, size_t index, TaskPlan& plan);

/// What the remote shell of a task reads of the others: with many hosts, MPIs start some from
/// others, so every task has it. Nothing of other kinds.
std::vector<PlannedFile> mpi_reach_files(const GangContext& gang, const std::string& folder);

}  // namespace muster::launch
