// muster's command line: from the arguments of main() to an exit code.
//
//   command/      what a command is: words, flags and help as data, the function that reads them
//                 (call.h), and what uses the data: the parser, help, completion
//   connection/   contexts, the choice of a server, and the way to it; starts a server where none runs
//   common/       tables, words, the terminal, errors and exit codes
//   spec/         a job from flags and files
//   others        a folder for each topic: one header names its commands; each .cc file holds the
//                 words of some commands, the code that reads their flags, and what they do
//
// Results go to standard output, everything else to standard error.
#pragma once

#include <string>
#include <vector>

#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"

namespace muster::cli {

struct VersionCommand {
  Output output = Output::kTable;
  config::ServerSource source = {};  ///< of a server that a command would start
};

struct CompletionCommand {
  std::string shell;
};

struct HelpCommand {
  std::vector<std::string> path;  ///< of the command; empty: muster
  bool asked = true;              ///< false: the command line was incomplete
};

Result<int> execute(const VersionCommand& command, const Hooks& hooks);
Result<int> execute(const CompletionCommand& command, const Hooks& hooks);
Result<int> execute(const HelpCommand& command, const Hooks& hooks);

/// The root command, `muster`.
Command command_tree();

/// Runs one command; `args` is without the program's own name. Returns the exit code: 0 done, 1 the
/// job failed (its own code with `run` and `submit --follow`), 2 bad usage, 3 not found, 4 refused,
/// 5 server unreachable, 130 interrupted.
///
/// Call once, from main's thread, before other threads start: it may block SIGINT and SIGTERM.
int run(const std::vector<std::string>& args, const Hooks& hooks);

}  // namespace muster::cli
