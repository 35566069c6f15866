// The flags that describe a job: as words, made from the table of fields, and read into a JobSpec.
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/command/command.h"
#include "cli/connection/contexts.h"
#include "job/spec.h"

namespace muster::cli::spec {

/// The spec that all jobs of this caller start from: the current folder and the inherited part of
/// the environment.
job::JobSpec default_spec(const Caller& caller);

/// Open MPI refuses to run for root unless the job's environment allows it.
void let_root_run_open_mpi(job::JobSpec& spec);

/// `submit mpi` and `submit single`. Adds what job::validate finds to the reader's faults, under
/// the names of the flags.
job::JobSpec read_submit_spec(job::Kind kind, const Arguments& arguments, const Caller& caller,
                              FlagReader& reader);

/// `run`: one task; or with -n N > 1 that many workers of one slot under an MPI launcher.
/// `name` is used where no --name is given.
job::JobSpec read_run_spec(const Arguments& arguments, const Caller& caller,
                           const std::string& name, FlagReader& reader);

/// The flags of single fields of a job of this kind ("mpi", ...; "run" of `muster run`), as the
/// table of fields has them.
Flags field_flags(std::string_view kind);
/// Under the headings of the help: resources, image, scheduling, files, Slurm, output. Flags of one
/// heading stay in their order.
Flags in_groups(Flags flags);
/// Those that mean more than one field: how important a job is; how many workers it may have.
Flags importance_flags();
Flags worker_flags();
/// What a job finds: its files, its volumes; and what it is called by.
Flags content_flags();

// The flags that say how important a job is and how many workers it has, read into a spec where
// they mean more than one field (the others: job/spec_table.cc).
//
// Pure.

/// What means more than one field: --priority, --interactive, --preemptible, --no-preemptible,
/// --on-exit, --on-log.
void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling);

/// --workers or --max-workers: how many there are at the most. The latter alone makes the job
/// elastic from the fewest that its kind can do with. REQUIRES: the spec's kind is set, and
/// --min-workers is read.
void read_workers(FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::cli::spec
