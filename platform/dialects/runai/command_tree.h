// Run:AI's commands and flags, as data (cli/command/command.h).
//
// Pure.
#pragma once

#include <vector>

#include "cli/command/command.h"

namespace muster::dialects::runai {

/// The root: `runai` itself.
cli::Command command_tree();

/// -p/--project and --loglevel, which all commands have.
std::vector<cli::Flag> common_flags();

/// submit, submit-mpi (mpi, mj), submit-dist mpi|pytorch|tf.           command_tree_submit.cc
std::vector<cli::Command> submit_commands();

}  // namespace muster::dialects::runai
