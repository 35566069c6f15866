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

/// --workers or --max-workers: how many there are at the most. The latter alone makes the job
/// elastic from the fewest that its kind can do with. REQUIRES: the spec's kind is set, and
/// --min-workers is read.
void read_workers(FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::cli
