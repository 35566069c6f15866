// The shell scripts of /generated.
//
// Pure. Values are quoted, whatever bytes they contain.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

/// Lines that set these variables, except those that a shell cannot set: FOO.BAR, UID.
std::string export_lines(const std::map<std::string, std::string>& variables);

/// sshd runs this instead of the requested command: it gives the command the job's environment and
/// folder, so that ranks need no list of -x flags. Without a command it opens a login shell.
std::string session_script(const std::map<std::string, std::string>& environment,
                           const std::string& folder);

/// mpirun starts each rank through this script (orte_fork_agent): it creates a file named after the
/// rank in ranks/, from which Muster learns where each rank runs. mpirun uses the launcher's agent
/// on every worker, so the script finds the folder in the task's $MUSTER_GENERATED: without a
/// sandbox, the launcher's folder is a different one. If $MUSTER_RANK_AGENT is set, the rank's
/// output goes into its own task's log.
///
/// If the task has a file "devices", its lines are run: mpirun may pass the launcher's variables to
/// every rank (-x CUDA_VISIBLE_DEVICES), and a rank must see the GPUs of its own worker.
std::string rank_script();

// The setup of a shell in a task: a prompt that names the task, programs that resolve the other
// tasks by name, and the history of earlier shells of the task.
//
// Pure.

/// Relative to the generated folder: the program to run as the shell.
inline constexpr const char* kShellStart = "bash/start";
/// The typed commands, one record for each (cli/sessions/sessions.h); written only by the task's
/// shells.
inline constexpr const char* kTypedCommands = "bash/commands";

/// How a shell reaches the other tasks.
struct ShellReach {
  std::vector<std::string> ssh_hosts;  ///< the names of tasks that answer ssh
  std::string remote_shell;            ///< Muster's own, if the tasks answer it; it is called rsh
};

/// The names of the tasks in such a shell, replaced when tasks join. Nothing if no task answers
/// ssh.
std::optional<PlannedFile> shell_hosts_file(const ShellReach& reach, const std::string& folder);

/// Adds the folders and files of a shell to `plan`. `folder`: the generated folder as the task sees
/// it.
void add_shell_files(const ShellReach& reach, const std::string& folder, TaskPlan& plan);

}  // namespace muster::launch
