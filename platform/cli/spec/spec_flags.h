// The flags of a job: made from the table of fields (job/spec_table.cc), and read into a JobSpec.
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

/// The initial spec of the caller's jobs: the current folder and the inherited environment.
job::JobSpec default_spec(const Caller& caller);

/// Open MPI refuses to run for root unless the job's environment allows it.
void let_root_run_open_mpi(job::JobSpec& spec);

/// The spec of `submit KIND`. Reports the faults of job::validate() under the names of the flags.
job::JobSpec read_submit_spec(job::Kind kind, const Arguments& arguments, const Caller& caller,
                              FlagReader& reader);

/// The spec of `run`: one task, or with -n N > 1 an MPI job with N workers of one slot. `name`: without
/// --name.
job::JobSpec read_run_spec(const Arguments& arguments, const Caller& caller,
                           const std::string& name, FlagReader& reader);

/// The flags of single fields of a job of this kind ("mpi" ...; "run" for `muster run`), from the table
/// of fields.
Flags field_flags(std::string_view kind);
/// Sets the headings of the help: resources, image, scheduling, files, Slurm, output. Keeps the order
/// within a heading.
Flags in_groups(Flags flags);
/// The flags that set several fields: priority and number of workers.
Flags importance_flags();
Flags worker_flags();
/// The flags on files, volumes and labels.
Flags content_flags();

/// Reads flags that set several fields: --priority, --interactive, --preemptible, --no-preemptible,
/// --on-exit, --on-log.
void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling);

/// --workers or --max-workers: the largest number of workers. --max-workers makes the job elastic, from
/// the smallest number that its kind allows. REQUIRES: the spec's kind is set, and --min-workers was
/// read.
void read_workers(FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::cli::spec
