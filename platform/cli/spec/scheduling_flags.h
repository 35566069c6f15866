// The flags that say how important a job is and how many workers it has, read into a spec where
// they mean more than one field (the others: job/spec_table.cc).
//
// Pure.
#pragma once

#include <string>

#include "cli/command/arguments.h"
#include "job/spec.h"

namespace muster::cli::spec {

/// What means more than one field: --priority, --interactive, --preemptible, --no-preemptible,
/// --on-exit, --on-log.
void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling);

/// --workers or --max-workers: how many there are at the most. The latter alone makes the job
/// elastic from the fewest that its kind can do with. REQUIRES: the spec's kind is set, and
/// --min-workers is read.
void read_workers(FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::cli::spec
