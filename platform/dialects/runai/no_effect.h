// The flags of Run:AI that stand for something this platform has no need of, or cannot do.
//
// A flag whose absence a program would notice by failing is refused, with what to use in its place;
// one that it does as well without is checked, and noted as doing nothing. None is dropped
// silently.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"

namespace muster::dialects::runai {

/// "--large-shm: ..." for each that does nothing here; faults of their values go into `reader`.
std::vector<std::string> notes_of_idle_flags(cli::FlagReader& reader);

/// Faults for those that are refused.
void refuse_unserved_flags(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
