// The flags of a job: made from the table of fields (job/spec_table.cc), and read into a JobSpec.
//
// Pure.
#pragma once

#include <optional>
#include <set>
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

/// What a command line changes in the spec of a file or of another job: flags, and the program after
/// "--".
struct FlagOverrides {
  Arguments arguments;
  Caller caller;
};

/// The overrides of a command line; nothing if it has none. Reports the faults of flags.
std::optional<FlagOverrides> read_overrides(const Arguments& arguments, const Caller& caller,
                                            FlagReader& reader);

/// The flag of a field, or of the nearest field that contains it: "command[2]" and
/// "environment.PATH" belong to the flags of "command" and "environment". Without one, the field.
std::string flag_of_spec_field(const std::string& field);

/// Applies --set, which overrides all other flags, makes paths absolute, and reports the faults of
/// the spec under the names of the flags.
void read_settings_and_check(const Caller& caller, FlagReader& reader, job::JobSpec& spec);

/// Records which variables and whether the folder come from default_spec(), and not from --env,
/// --folder or --set: the programs of an image do not get them. REQUIRES: all flags were applied.
void note_inherited(const FlagReader& reader, job::JobSpec& spec);

/// Applies them. A flag replaces the value of its field; variables, labels, secrets and volumes are added,
/// and replace those of the same name or place; retry rules precede the spec's own. Faults are
/// reported under the names of the flags. Returns the fields that were set explicitly, even if their
/// values did not change.
std::set<std::string> override_spec(const FlagOverrides& overrides, FlagReader& reader,
                                    job::JobSpec& spec);

/// The flags that override_spec() reads: those of all kinds.
Flags override_flags();

/// The flags of single fields of a job of this kind ("mpi" ...; "run" for `muster run`; empty: any
/// kind), from the table of fields.
Flags field_flags(std::string_view kind);
/// Sets the headings of the help: resources, image, scheduling and so on. Keeps the order
/// within a heading.
Flags in_groups(Flags flags);
/// The flags that set several fields: priority and number of workers.
Flags importance_flags();
Flags worker_flags();
/// The flags on files, volumes and labels.
Flags content_flags();
/// The flags on environment variables and secrets.
Flags variable_flags();

/// Reads flags that set several fields: --priority, --interactive, --preemptible, --no-preemptible,
/// --on-exit, --on-log.
void read_scheduling_flags(FlagReader& reader, job::Scheduling& scheduling);

/// --workers or --max-workers: the largest number of workers. --max-workers makes the job elastic, from
/// the spec's min_workers, or else from the smallest number that its kind allows. REQUIRES: the spec's
/// kind is set, and --min-workers was read.
void read_workers(FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::cli::spec
