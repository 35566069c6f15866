// The flags that say what a job needs and how important it is, read into a spec.
//
// Pure.
#pragma once

#include <string>

#include "cli/flag_reader.h"
#include "job/spec.h"

namespace muster::cli {

job::Resources read_resource_flags(FlagReader& reader);
job::Scheduling read_scheduling_flags(FlagReader& reader);

/// --workers, or --max-workers, which is the same.
int read_workers(FlagReader& reader);

}  // namespace muster::cli
