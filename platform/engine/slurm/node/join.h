// muster-node --join TASKS PROGRAM...: what srun starts a rank of a gang through, where it is
// Slurm that starts ranks. It enters the sandbox of the rank's task on this node, signs the rank
// in, and runs the program there, in Slurm's step: with what PMIx tells it, its standard streams
// and its signals. How the program ends, it ends.
#pragma once

#include <string>
#include <vector>

namespace muster::engine::slurm {

/// `arguments`: from TASKS on. Returns an exit code, or ends by the signal that the program has
/// ended by.
int run_join(const std::vector<std::string>& arguments);

}  // namespace muster::engine::slurm
