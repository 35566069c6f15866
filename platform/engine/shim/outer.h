// The shim's outer half: holds one task on behalf of a server that may come and go. It owns the
// task's log, passes on a stop, and writes down how the task ended.
//
// Signals: SIGTERM stops the task, with its grace, however often it comes; SIGQUIT ends it at once.
#pragma once

#include <filesystem>

namespace muster::engine {

/// Runs on the descriptors of shim/plan.h until the task has ended and its log is complete. Returns
/// the process's exit code: 0 when the exit record stands.
int run_outer(const std::filesystem::path& task_folder);

}  // namespace muster::engine
