// The help of a command, from its description.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/command.h"

namespace muster::cli {

/// Usage, what it does, its commands and flags, an example. `path` may name an alias or stop early
/// at a word that is no command; the help is that of the last command it found.
std::string help_text(const Command& root, const std::vector<std::string>& path);

}  // namespace muster::cli
