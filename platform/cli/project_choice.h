// The project that a user has chosen to submit to (`muster project use`): one line in the file
// "project" of the configuration folder. $MUSTER_PROJECT wins over it.
//
// I/O; blocking.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/caller.h"

namespace muster::cli {

/// Empty where none was chosen. Errors: the file is there but cannot be read.
base::Result<std::string> project_in_use(const Environment& environment);

/// Keeps `name` as the user's choice. The folder is made 0700, the file 0600.
base::Result<void> use_project(const std::string& name);

}  // namespace muster::cli
