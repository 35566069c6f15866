// What commands share: the way to the server, and the way of results to standard output. Everything
// else goes to standard error.
//
// Blocking; I/O.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/hooks.h"
#include "job/job.h"

namespace muster::cli {

using base::Result;

/// The server of the context that was chosen; a local one is started if need be. `project`: whose
/// jobs are meant by names that several have.
Result<Connection> connect(const Hooks& hooks, const std::string& project = {});

/// Tries every name, so that one that fails spares none of the others; the first failure decides
/// the exit code.
int for_each_name(const std::vector<std::string>& names,
                  const std::function<Result<void>(const std::string&)>& act);

/// The same for what goes away, and says so. `ignore_missing`: one that is not there is no failure.
int delete_each(const std::vector<std::string>& names, bool ignore_missing,
                const std::function<Result<void>(const std::string&)>& remove);

/// The names of jobs, one a line.
std::string names_of(const std::vector<job::Job>& jobs);

/// Writes a result to standard output; on a terminal, with control characters made harmless.
Result<void> show(std::string_view text);

/// show() for a person's eyes, or `json` as it is or as YAML.
Result<void> show(Output output, std::string_view text, std::string_view json);

}  // namespace muster::cli
