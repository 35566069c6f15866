// Enters the sandbox of a task that runs, to run a program beside the task's own.
//
// Changes the calling process, which must have one thread; its children, not itself, are in the
// task's process tree.
#pragma once

#include <string_view>

#include "base/result.h"

namespace muster::engine {

/// `task`: a pidfd of the task's inner half. What this process shares with the task already stays.
base::Result<void> enter_task(int task);

/// Refuses this process and its children the system calls that the filter of the task refuses
/// (InnerPlan::filter).
base::Result<void> filter_system_calls(std::string_view program);

}  // namespace muster::engine
