// How long a job is kept after its end: --ttl-after-finish, and the name that it has in Run:AI's
// second command line.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>

#include "cli/flag_reader.h"

namespace muster::cli::runai {

/// Nothing: as the server has it.
std::optional<std::chrono::milliseconds> keep_for_of(FlagReader& reader);

}  // namespace muster::cli::runai
