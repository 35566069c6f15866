// Gradient's commands and flags, as data (cli/command/command.h).
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace muster::dialects::gradient {

/// The root: `gradient` itself.
cli::Command command_tree();

/// --apiKey, --optionsFile, --createOptionsFile, which all commands have that are not groups.
std::vector<cli::Flag> common_flags();

/// experiments create and run, with singlenode and multinode.
cli::Command create_command();
cli::Command run_command();

/// projects, clusters, jobs, secrets, apiKey, logout, version.
std::vector<cli::Command> other_commands();

/// --limit and --offset.
std::vector<cli::Flag> page_flags();
/// --line, --limit and --follow.
std::vector<cli::Flag> log_flags();
/// The optional word after a switch: "--follow" and "--follow true" are the same.
cli::Positionals switch_value();

/// The metrics that Gradient itself measures.
std::vector<std::string> built_in_metrics();

}  // namespace muster::dialects::gradient
