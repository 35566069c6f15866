// The near end of a program that muster-shim --exec runs in a task of the process engine.
//
// On the EventLoop's thread. REQUIRES: this process ignores SIGPIPE, as servers do.
#pragma once

#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// What has been started: the near end for whoever asked, and the process for the engine to reap.
struct StartedExec {
  std::unique_ptr<Exec> exec;
  base::Child helper;
};

/// `inner` has the program, its environment and its folder; `task` is the pidfd of the process
/// whose namespaces it enters.
Result<StartedExec> start_exec(base::EventLoop& loop, const std::string& shim,
                               const std::vector<std::string>& environment, const InnerPlan& inner,
                               const base::UniqueFd& task, const ExecPlan& plan,
                               ExecHandlers handlers);

/// kNotFound where the task has no such program. Looks at the files as process `inner` sees them.
Result<void> check_program(pid_t inner, const InnerPlan& plan);

}  // namespace muster::engine
