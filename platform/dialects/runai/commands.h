// What each of Run:AI's commands does.
//
// Blocking; I/O.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/caller.h"
#include "cli/connection/connection.h"
#include "cli/connection/hooks.h"

namespace muster::dialects::runai {

using base::Result;

/// All that a command needs. Faults of flags go into `reader`; a command looks at reader.ok()
/// before it does anything, and returns its usage_error() where not.
struct Asked {
  const std::vector<std::string>& words;  ///< as they were typed
  const cli::Arguments& arguments;
  cli::FlagReader& reader;
  const cli::Caller& caller;
  const cli::Hooks& hooks;

  /// -p, or the project in use; empty: the server's default.
  std::string project() const;
};

/// submit, submit-mpi, submit-dist.                                   commands_submit.cc
Result<int> submit(Asked& asked);
/// All others.                                                        commands.cc
Result<int> run_other(Asked& asked);

/// Shows the output of a task from its start, waiting up to 30 s until it runs. commands_attach.cc
Result<int> attach(cli::Connection& connection, const std::string& job, const std::string& pod);

}  // namespace muster::dialects::runai
