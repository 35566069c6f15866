// The bubblewrap command line of a task.
//
// Pure but for looking at which folders the machine has.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// Everything up to the command: own hostname, process tree, /generated, /dev/shm, /etc/hosts; the
/// rest of the machine as it is. kNotFound where bubblewrap is not installed, with what to install.
base::Result<std::vector<std::string>> sandbox_command(const launch::TaskPlan& plan,
                                                       const TaskFolder& folder);

/// What to do about a sandbox that could not be made.
std::string sandbox_advice();

}  // namespace muster::engine
