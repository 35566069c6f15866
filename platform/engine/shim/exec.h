// Starts one more program in a running task, beside the task's own (muster-shim --exec), and the
// steps of such a start that other programs share: environment, interpreter, sandbox.
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

// --- environments
//
// Environments as programs have them: "NAME=value", each name once.
//
// Pure.

/// Of a name that is in both, the second's value.
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::map<std::string, std::string>& more);
std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::vector<std::string>& more);

// --- the sandbox of a task
//
// Enters the sandbox of a task that runs, to run a program beside the task's own.
//
// Changes the calling process, which must have one thread; its children, not itself, are in the
// task's process tree.

/// `task`: a pidfd of the task's inner half. What this process shares with the task already stays.
base::Result<void> enter_task(int task);

/// Refuses this process and its children the system calls that the filter of the task refuses
/// (InnerPlan::filter).
base::Result<void> filter_system_calls(std::string_view program);

// --- starting a program
//
// muster-shim --exec: one more program in a task that runs, beside what the task itself runs. It is
// started by the engine with the program's input and outputs as 0, 1 and 2 (a terminal, or pipes)
// and with the descriptors kExec... of shim/plan.h; it says by the control socket how the program
// ended. When the engine closes that socket, or the task ends, the program is ended.
//
// It stays in the machine's namespaces, from where it sees everything that it has to end; a process
// between it and the program enters those of the task.

/// What whoever asks for a program that the task lacks is told, before anything is started.
base::Error no_such_program(const std::string& name);

/// Of a program that could not be started: what a shell would answer, and why in words.
job::ExitStatus status_of_failed_start(const base::Error& error);

/// What is wrong with the first line of the script `program`: it ends as lines do on Windows, or
/// names an interpreter that is missing, directly or for /usr/bin/env to find in `environment`.
std::optional<base::Error> interpreter_fault(const std::string& program,
                                             const std::vector<std::string>& environment);

/// Starts options.program. A script whose interpreter is missing is the fault, not "no such file".
base::Result<base::Child> spawn_program(const base::SpawnOptions& options);

}  // namespace muster::engine
