// The flags that describe a project.
//
// Pure.
#pragma once

#include "api/project_wire.h"
#include "cli/flag_reader.h"

namespace muster::cli {

/// What `project create` and `project set` say. With --pool, quota, limit and weight are of these
/// pools alone.
api::ProjectChange read_project_flags(FlagReader& reader);

}  // namespace muster::cli
