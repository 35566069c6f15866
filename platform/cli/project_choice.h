// The project that a user has chosen to submit to (`muster project use`), by server: that of the
// local one is one line in the file "project" of the configuration folder, that of any other stands
// in its context. $MUSTER_PROJECT wins over both.
//
// I/O; blocking.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/caller.h"

namespace muster::cli {

/// Empty where none was chosen. Errors: the file is there but cannot be read.
/// `context`: what --context says; where it leads nowhere, none was chosen.
base::Result<std::string> project_in_use(const Environment& environment,
                                         const std::string& context);

/// Keeps `name` as the user's choice for the server that is in use. The folder is made 0700, the
/// file 0600.
base::Result<void> use_project(const std::string& name, const std::string& context);

}  // namespace muster::cli
