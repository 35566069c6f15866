// What `runai submit`, `submit-mpi` and `submit-dist` were told, and the job that it becomes.
//
// What the job has of its caller is what a container would have of its machine: no variable of the
// caller's environment but HOME, and PATH and the rest as the platform sets them; -e sets more. Its
// working folder is the caller's current one, for a job's tasks see the machine's own files, unless
// --working-dir says another.
//
// What comes behind "--" are arguments of the image's own command, or with --command replaces it.
// Retries are those of --backoff-limit, 6 without it, and none where somebody sits before the job.
// The launcher of an MPI job claims nothing (--master-gpu aside); the master of a PyTorch job and
// the chief of a TensorFlow one claim what a worker does.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "cli/connection/contexts.h"
#include "cli/spec/send_workspace.h"
#include "dialects/runai/volumes.h"
#include "job/spec.h"

namespace muster::dialects::runai {

struct Submission {
  job::JobSpec spec;        ///< without its name where `name_prefix` is set; valid otherwise, once
                            ///< it is named_after() its name (volumes.h)
  std::string name_prefix;  ///< the name is this, '-' and the smallest number that is free
  std::optional<cli::spec::WorkspaceOptions> git_sync;
  std::string git_target;  ///< where it is found
  bool attach = false;
  bool dry_run = false;
  std::vector<std::string> notes;  ///< to be said on standard error: flags that do nothing here
};

/// Every fault goes into `reader`, all at once. `words`: the command line as it was typed.
Submission read_submission(const cli::Arguments& arguments, cli::FlagReader& reader,
                           const cli::Caller& caller, const std::vector<std::string>& words);

/// The words as one would type them, for people: without passwords and secrets.
std::string command_line_of(const std::vector<std::string>& words);

// What is wrong with a job that was read, said of the flags that it came from.
//
// Pure.

/// A name, or what numbered names begin with.
void check_name(const std::string& name, bool is_prefix, cli::FlagReader& reader);

/// Adds what job::validate() finds, but for flags that are at fault already: what stands in for
/// their values is nobody's fault. `volumes` are those of the spec from `own_volumes` on.
void check_submission(const Submission& submission, const std::vector<std::string>& path,
                      const std::vector<AskedVolume>& volumes, size_t own_volumes,
                      cli::FlagReader& reader);

// The flags of Run:AI that stand for something this platform has no need of, or cannot do.
//
// A flag whose absence a program would notice by failing is refused, with what to use in its place;
// one that it does as well without is checked, and noted as doing nothing. None is dropped
// silently.
//
// Pure.

/// "--large-shm: ..." for each that does nothing here; faults of their values go into `reader`.
std::vector<std::string> notes_of_idle_flags(cli::FlagReader& reader);

/// Faults for those that are refused.
void refuse_unserved_flags(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
