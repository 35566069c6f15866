// Gradient's commands and flags, as plain data (cli/command_tree.h).
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace muster::dialects::gradient {

/// The root: `gradient` itself.
cli::Command command_tree();

/// --apiKey, --optionsFile, --createOptionsFile: every command that does something has them.
std::vector<cli::Flag> common_flags();

/// experiments create and run, with singlenode and multinode below. command_tree_create.cc
cli::Command create_command();
cli::Command run_command();

// What Gradient's tree of commands is put together from.
//
// Pure; for command_tree.cc and its neighbours alone.

/// projects, clusters, jobs, secrets, apiKey, logout, version.   command_tree_others.cc
std::vector<cli::Command> other_commands();

/// --limit and --offset of what comes in pages.
std::vector<cli::Flag> page_flags();
/// --line, --limit and --follow.
std::vector<cli::Flag> log_flags();
/// What may follow the switch of such a command: "--follow" and "--follow true" are the same.
cli::Positionals switch_value();

/// What Gradient measures by itself.
std::vector<std::string> built_in_metrics();

}  // namespace muster::dialects::gradient
