// Gradient's commands and flags, as plain data (cli/command_tree.h).
//
// Pure.
#pragma once

#include "cli/command/command.h"

namespace muster::dialects::gradient {

/// The root: `gradient` itself.
cli::Command command_tree();

/// --apiKey, --optionsFile, --createOptionsFile: every command that does something has them.
std::vector<cli::Flag> common_flags();

/// experiments create and run, with singlenode and multinode below. command_tree_create.cc
cli::Command create_command();
cli::Command run_command();

}  // namespace muster::dialects::gradient
