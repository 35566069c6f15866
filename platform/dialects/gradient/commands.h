// What each of Gradient's commands does.
//
// Blocking; I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/caller.h"
#include "cli/connection/connection.h"
#include "cli/connection/hooks.h"

namespace muster::dialects::gradient {

/// All that a command needs. Faults of flags go into `reader`; a command looks at reader.ok()
/// before it does anything, and returns its usage_error() where not.
struct Asked {
  const std::vector<std::string>& path;  ///< {"experiments", "list"}
  const cli::Arguments& arguments;
  cli::FlagReader& reader;
  const cli::Caller& caller;
  const cli::Hooks& hooks;
  const std::vector<std::string>& words;  ///< as they were typed
};

/// experiments create and run.                                        commands_create.cc
Result<int> create_or_run(Asked& asked);
/// All others; of a command that only holds others, its help.          commands.cc
Result<int> run_other(Asked& asked);

/// The server that is in use, shown the key of --apiKey or $PAPERSPACE_API_KEY or `gradient apiKey`
/// in the place of the context's token; a server of this user alone asks for none. connect.cc
Result<cli::Connection> connect(const Asked& asked);

/// Prints the logs of an experiment until it has ended: "Awaiting logs...", then
/// "ID<TAB>line<TAB>message" each. The exit code of the job.          follow_logs.cc
/// `task`: only of this one.
Result<int> follow_logs(cli::Connection& connection, const std::string& id,
                        const std::optional<std::string>& task = std::nullopt);

}  // namespace muster::dialects::gradient
