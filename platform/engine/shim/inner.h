// The shim's inner half: process 1 of a sandbox (or, without one, the subreaper of its task). It
// starts the program, answers ssh, reaps what dies, and ends everything when the program has ended
// or the outer half is gone.
#pragma once

namespace muster::engine {

/// Runs on the descriptors of shim/plan.h; returns the process's exit code.
int run_inner();

}  // namespace muster::engine
