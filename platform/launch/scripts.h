// The two small shell scripts of /generated.
//
// Pure. Values are quoted, whatever bytes they hold.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

/// Lines that set these variables.
std::string export_lines(const std::map<std::string, std::string>& variables);

/// sshd runs this in the place of the command it was asked for: it gives it the job's environment
/// and folder, so that ranks need no list of -x flags. Without a command it opens a login shell.
std::string session_script(const std::map<std::string, std::string>& environment,
                           const std::string& folder);

/// mpirun starts each rank through this (orte_fork_agent): it leaves a file named after the rank in
/// ranks/, which is how Muster knows where each rank runs, and that all of them did. mpirun hands
/// the launcher's own agent to every worker, so the folder is told by the task's $MUSTER_GENERATED:
/// where nothing is sandboxed, the launcher's is another one. Where $MUSTER_RANK_AGENT is set, the
/// rank's output goes into its own task's log.
///
/// Where the task has a file "devices", its lines are run: mpirun may hand the launcher's variables
/// on to every rank (-x CUDA_VISIBLE_DEVICES), and a rank is to see its own worker's GPUs.
std::string rank_script();

// What somebody finds who opens a shell in a task: a prompt that says where they are, programs that
// know the other tasks by name, and what was typed in earlier shells of the task.
//
// Pure.

/// Relative to the generated folder: run in place of a shell.
inline constexpr const char* kShellStart = "bash/start";
/// What was typed, a record a command (cli/typed_commands.h); only the shells of the task write it.
inline constexpr const char* kTypedCommands = "bash/commands";

/// How a shell reaches the other tasks.
struct ShellReach {
  std::vector<std::string> ssh_hosts;  ///< those that answer ssh, by name
  std::string remote_shell;  ///< Muster's own, where that is what they answer: it is called rsh
};

/// By which name each task is found in such a shell; what changes when others join. Nothing where
/// none answers ssh.
std::optional<PlannedFile> shell_hosts_file(const ShellReach& reach, const std::string& folder);

/// Adds the folders and files of a shell to `plan`. `folder`: the generated folder as the task sees
/// it.
void add_shell_files(const ShellReach& reach, const std::string& folder, TaskPlan& plan);

}  // namespace muster::launch
