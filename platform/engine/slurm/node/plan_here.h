// What of a task's plan is another thing on the node where Slurm has put it.
//
// Pure.
#pragma once

#include "engine/slurm/node/step_facts.h"
#include "launch/task_plan.h"

namespace muster::engine::slurm {

/// The GPUs go by the names that Slurm has given them there, where it has; the devices of the plan
/// are numbers of StepFacts::gpu_indices. What the task uses of CPUs and memory is held by Slurm.
launch::TaskPlan plan_here(launch::TaskPlan plan, const StepFacts& facts);

}  // namespace muster::engine::slurm
