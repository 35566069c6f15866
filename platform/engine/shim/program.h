// The whole of muster-shim, as a function that is compiled in the batch of its parts: a program's own
// translation unit has a fixed price (docs/benchmarks.md, make bench-build).
#pragma once

namespace muster::engine {

/// Runs in the mode that the first argument chooses (modes.h), and returns the exit code.
int run_shim(int argc, char** argv);

}  // namespace muster::engine
