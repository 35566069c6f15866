// The flags that describe a job, read into a JobSpec.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/caller.h"
#include "cli/flag_reader.h"
#include "job/spec.h"

namespace muster::cli {

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

}  // namespace muster::cli
