// Gradient's commands and flags, as plain data (cli/command_tree.h).
//
// Pure.
#pragma once

#include "cli/command_tree.h"

namespace muster::cli::gradient {

/// The root: `gradient` itself.
Command command_tree();

/// --apiKey, --optionsFile, --createOptionsFile: every command that does something has them.
std::vector<Flag> common_flags();

/// experiments create and run, with singlenode and multinode below. command_tree_create.cc
Command create_command();
Command run_command();

}  // namespace muster::cli::gradient
