// Starts one more program in a running task, beside the task's own (muster-shim --exec). Other
// starters of programs share its steps: environment, sandbox, system call filter, interpreter.
//
// The engine starts muster-shim --exec with the program's input and outputs as descriptors 0, 1 and
// 2 (a terminal, or pipes) and the descriptors kExec... of plan.h. The end of the program is
// reported over the control socket. When the engine closes that socket, or the task ends,
// muster-shim --exec kills the program.
//
// muster-shim --exec itself stays in the machine's namespaces, where it can kill every process that
// the program has started. It forks a process that enters the task's namespaces and starts the
// program there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/subprocess.h"
#include "job/exit_status.h"

namespace muster::engine {

/// Merges two environments: lines "NAME=value", each name once. If a name is in both, the value of
/// `more` counts. Pure.
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::map<std::string, std::string>& more);
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::vector<std::string>& more);

/// Moves this process into the namespaces of a running task, except those that it is in already.
/// The process must have one thread. Its children are in the task's process tree; it is not.
/// `task`: a pidfd of the task's inner half.
base::Result<void> enter_task(int task);

/// Installs a seccomp filter (InnerPlan::filter) in this process and its children.
base::Result<void> filter_system_calls(std::string_view program);

/// kNotFound: the task has no program of this name. The answer before anything is started.
base::Error no_such_program(const std::string& name);

/// The status of a program that could not be started: the exit code that a shell would give (126 or
/// 127), and the error.
job::ExitStatus status_of_failed_start(const base::Error& error);

/// Checks the first line of the script `program`. Error: the line ends with CRLF, or names an
/// interpreter that does not exist, directly or through /usr/bin/env, which searches the PATH of
/// `environment`. nullopt: no fault, or not a script.
std::optional<base::Error> interpreter_fault(const std::string& program,
                                             const std::vector<std::string>& environment);

/// Starts options.program. If the kernel reports "no such file" because the interpreter of a script
/// is missing, the error names the interpreter.
base::Result<base::Child> spawn_program(const base::SpawnOptions& options);

}  // namespace muster::engine
