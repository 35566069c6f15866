// muster's command line: from the arguments of main() to an exit code.
//
//   root.h          all commands in one tree
//   command_tree.h  what a command is: its words, flags and help, and the function that reads them
//   call.h          arguments -> a command's options (pure), on top of arguments.h (CLI11)
//   connection.h    finds the server, or starts one
#pragma once

#include <string>
#include <vector>

#include "cli/hooks.h"

namespace muster::cli {

/// Runs one command; `args` is without the program's own name. Returns the exit code: 0 done, 1 the
/// job failed (its own code with `run` and `submit --follow`), 2 bad usage, 3 not found, 4 refused,
/// 5 server unreachable, 130 interrupted.
///
/// Call once, from main's thread, before other threads start: it may block SIGINT and SIGTERM.
int run(const std::vector<std::string>& args, const Hooks& hooks);

}  // namespace muster::cli
