// The shim's outer half: holds one task on behalf of a server that may come and go. It owns the
// task's log, passes on a stop, and writes down how the task ended.
//
// Signals: SIGTERM stops the task, with its grace, however often it comes; SIGQUIT ends it at once.
#pragma once

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// Where an outer half stands.
struct OuterSite {
  /// Told once that the task's programs may be started from now on, or why none can be (else
  /// nullptr).
  std::function<void(const base::Error* refusal)> told;
  /// The task's port is out of the engine's reach: the outer half asks it, and calls this once it
  /// greets. May be empty.
  std::function<void()> answered;
  /// It is process 1 of a container: orphans of strangers come to it, the control group is the
  /// task's own, and it sees itself that the task's port answers.
  bool is_process_one = false;
};

/// Until the task has ended and its log is complete. False: it was refused; else its exit record
/// stands. REQUIRES: this process is a child subreaper, or process 1.
bool hold_task(const TaskFolder& folder, OuterSite site);

/// Runs on the descriptors of shim/plan.h. Returns the process's exit code: 0 when the exit record
/// stands.
int run_outer(const std::filesystem::path& task_folder);

}  // namespace muster::engine
