// What a launcher needs whose ranks are started by srun: the variables by which srun knows the
// Slurm job that it is in, and where the tasks of the gang lie on each node. No other task has
// these: an mpirun that saw them would have Slurm start its daemons.
//
// Pure.
#pragma once

#include <string>

#include "engine/slurm/node/step_facts.h"
#include "launch/task_plan.h"

namespace muster::engine::slurm {

/// `variables`: of muster-node's own step. Any plan that does not run srun stays as it is.
launch::TaskPlan launcher_here(launch::TaskPlan plan, const Variables& variables,
                               const std::string& attempt_folder);

}  // namespace muster::engine::slurm
