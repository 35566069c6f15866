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
#include "cli/connection/caller.h"
#include "cli/spec/send_workspace.h"
#include "job/spec.h"

namespace muster::dialects::runai {

struct Submission {
  job::JobSpec spec;        ///< without its name where `name_prefix` is set; valid otherwise, once
                            ///< it is named_after() its name (volumes.h)
  std::string name_prefix;  ///< the name is this, '-' and the smallest number that is free
  std::optional<cli::spec::WorkspaceWish> git_sync;
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

}  // namespace muster::dialects::runai
