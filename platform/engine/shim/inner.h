// The shim's inner half: process 1 of a sandbox (or, without one, the subreaper of its task). It
// starts the program, answers ssh, reaps what dies, and ends everything when the program has ended
// or the outer half is gone.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace muster::engine {

/// Runs on the descriptors of shim/plan.h; returns the process's exit code.
int run_inner();

/// The inner half of a task, by the pid of its shim. kConflict: there is none (any more).
base::Result<pid_t> inner_half_of(pid_t shim);

}  // namespace muster::engine
