// Whether a port that a task's program is to bind is still nobody's. It was chosen when the task
// was planned, and nobody holds it for the program.
#pragma once

#include "base/result.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// kConflict where another process has it, at its address or at all addresses, naming both. Whoever
/// takes it after this is not seen. Of an address that is no IPv4 address (a name) all are tried.
base::Result<void> check_is_free(const launch::ServedPort& served);

}  // namespace muster::engine
