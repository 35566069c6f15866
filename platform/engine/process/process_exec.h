// The engine's end of programs that users reach in a task: a program beside the task's own
// (muster-shim --exec), and the task's own program (the socket "attach", shim/attachments.h).
//
// On the EventLoop's thread. REQUIRES: this process ignores SIGPIPE, as servers do.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "engine/engine.h"
#include "engine/shim/plan.h"

namespace muster::engine {

// --- the program
//
// What is run in a task for an ExecPlan: a program of the task, or one of Muster's own.
//
// Pure.

/// `task`: what the task itself was started with. `shim`: muster-shim, beside which muster-helper
/// stands; a sandbox shows it where the machine has it.
///
/// A helper has nothing of the task's environment: LD_LIBRARY_PATH and the like, set for the
/// program of the job, would have it load what it was not built with.
InnerPlan exec_program(const ExecPlan& plan, const InnerPlan& task,
                       const std::filesystem::path& shim);

// --- a program beside the task's own

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

// --- the task's own program

/// kConflict: the task does not run, or was started by a release whose shims know nothing of this.
Result<std::unique_ptr<Exec>> attach_to(base::EventLoop& loop, const TaskFolder& folder,
                                        const std::string& task, ExecHandlers handlers);

/// The processes that hold programs of exec(), until they have ended and are reaped.
class ExecHelpers {
 public:
  explicit ExecHelpers(base::EventLoop& loop) : loop_(loop) {}

  void keep(base::Child helper);

 private:
  struct Helper {
    base::Child process;
    base::EventLoop::Interest end;
  };

  base::EventLoop& loop_;
  std::map<pid_t, Helper> helpers_;
};

}  // namespace muster::engine
