// What each of Gradient's commands does.
//
// Blocking; I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments.h"
#include "cli/caller.h"
#include "cli/connection.h"
#include "cli/flag_reader.h"
#include "cli/hooks.h"

namespace muster::cli::gradient {

/// All that a command needs. Faults of flags go into `reader`; a command looks at reader.ok()
/// before it does anything, and returns its usage_error() where not.
struct Asked {
  const std::vector<std::string>& path;  ///< {"experiments", "list"}
  const Arguments& arguments;
  FlagReader& reader;
  const Caller& caller;
  const Hooks& hooks;
  const std::vector<std::string>& words;  ///< as they were typed
};

/// experiments create and run.                                        commands_create.cc
Result<int> create_or_run(Asked& asked);
/// All others; of a command that only holds others, its help.          commands.cc
Result<int> run_other(Asked& asked);

/// The server that is in use, shown the key of --apiKey or $PAPERSPACE_API_KEY or `gradient apiKey`
/// in the place of the context's token; a server of this user alone asks for none. connect.cc
Result<Connection> connect(const Asked& asked);

/// Prints the logs of an experiment until it has ended: "Awaiting logs...", then
/// "ID<TAB>line<TAB>message" each. The exit code of the job.          follow_logs.cc
/// `task`: only of this one.
Result<int> follow_logs(Connection& connection, const std::string& id,
                        const std::optional<std::string>& task = std::nullopt);

}  // namespace muster::cli::gradient
