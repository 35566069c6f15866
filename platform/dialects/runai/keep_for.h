// How long a job is kept after its end: --ttl-after-finish, and the name that it has in Run:AI's
// second command line.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>

#include "cli/command/arguments.h"

namespace muster::dialects::runai {

/// Nothing: as the server has it.
std::optional<std::chrono::milliseconds> keep_for_of(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
