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

// --- a program beside the task's own

/// The plan of the program: a program of the task, or muster-helper. `task`: the plan of the task
/// itself. `shim`: path of muster-shim; muster-helper is in the same folder, and a sandbox sees it
/// at the same path.
///
/// muster-helper does not get the task's environment: LD_LIBRARY_PATH and the like, set for the
/// job's program, would make it load the wrong libraries.
///
/// Pure.
InnerPlan exec_program(const ExecPlan& plan, const InnerPlan& task,
                       const std::filesystem::path& shim);

/// A started program: the engine's end of it, and the process that holds it (see ExecHelpers).
struct StartedExec {
  std::unique_ptr<Exec> exec;
  base::Child helper;
};

/// The process whose namespaces a program enters: the task's inner half.
struct ExecTask {
  pid_t inner = 0;
  base::UniqueFd pidfd;
};

/// Starts a program with muster-shim --exec. `inner`: the program, its environment and its folder.
Result<StartedExec> start_exec(base::EventLoop& loop, const std::string& shim,
                               const std::vector<std::string>& environment, const InnerPlan& inner,
                               const ExecTask& task, const ExecPlan& plan, ExecHandlers handlers);

/// Checks that the program exists among the files that process `inner` sees. kNotFound: it does
/// not.
Result<void> check_program(pid_t inner, const InnerPlan& plan);

/// The processes that hold programs of exec(), until each has ended and is reaped.
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

// --- the task's own program

/// Attaches to the task's own program. kConflict: the task does not run, or its shim is of an older
/// release that cannot do this.
Result<std::unique_ptr<Exec>> attach_to(base::EventLoop& loop, const TaskFolder& folder,
                                        const std::string& task, ExecHandlers handlers);

}  // namespace muster::engine
