// Run:AI's commands and flags, as plain data (cli/command_tree.h).
//
// Pure.
#pragma once

#include <vector>

#include "cli/command_tree.h"

namespace muster::cli::runai {

/// The root: `runai` itself.
Command command_tree();

/// -p/--project, --loglevel: every command has them.
std::vector<Flag> common_flags();

/// submit, submit-mpi (mpi, mj), submit-dist mpi|pytorch|tf.           command_tree_submit.cc
std::vector<Command> submit_commands();

}  // namespace muster::cli::runai
