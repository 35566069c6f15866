// The whole of muster-rsh, as a function that is compiled in the batch of its parts.
#pragma once

namespace muster::engine::rsh {

/// Runs a command on a host of the job, or serves such a call, and returns the exit code.
int run_rsh(int argc, char** argv);

}  // namespace muster::engine::rsh
