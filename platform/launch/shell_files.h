// What somebody finds who opens a shell in a task: a prompt that says where they are, programs that
// know the other tasks by name, and what was typed in earlier shells of the task.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

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
