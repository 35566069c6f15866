// What sbatch reads on its standard input: the batch script with a submission's options in #SBATCH
// lines. Nothing of a job is an argument of a program, and no value can become a line or an option
// of its own.
//
// Pure; thread-safe.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// kInvalid: values that cannot be said to Slurm, all of them.
base::Result<std::string> batch_script(const Submission& submission);

/// Nodes that a component takes, and may do with.
int most_nodes(const Component& component);
int least_nodes(const Component& component);

}  // namespace muster::engine::slurm
