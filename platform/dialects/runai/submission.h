// `runai submit`, `submit-mpi` and `submit-dist`: from their flags to a job.
//
// The job gets no variables of the caller's environment except HOME; -e sets variables. The working
// folder is --working-dir, or the caller's current folder, because tasks see the machine's files.
//
// The words after "--" are arguments of the image's command; with --command they replace it. Retries are
// those of --backoff-limit (default 6), and none for interactive jobs. The launcher of an MPI job claims
// no resources (except --master-gpu); a PyTorch master and a TensorFlow chief claim those of a worker.
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
  std::string name_prefix;  ///< the name is this, '-' and the smallest unused number
  std::optional<cli::spec::WorkspaceOptions> git_sync;
  std::string git_target;  ///< the folder of git_sync in the tasks
  bool attach = false;
  bool dry_run = false;
  std::vector<std::string> notes;  ///< for standard error: flags without effect
};

/// Reports all faults to `reader`. `words`: the command line as typed. `on_kubernetes`: as in
/// cli::is_for_kubernetes(); existing volume claims, tolerations and extended resources are those of the
/// cluster.
Submission read_submission(const cli::Arguments& arguments, cli::FlagReader& reader,
                           const cli::Caller& caller, const std::vector<std::string>& words,
                           bool on_kubernetes);

/// The command line as text, without passwords and secrets.
std::string command_line_of(const std::vector<std::string>& words);

/// Checks a name, or the prefix of numbered names.
void check_name(const std::string& name, bool is_prefix, cli::FlagReader& reader);

/// Reports the faults of job::validate() under the names of flags. Flags that already have a fault are
/// skipped, because their values are fallbacks. The volumes of `mounts` are those of the spec from
/// `own_volumes` on.
void check_submission(const Submission& submission, const std::vector<std::string>& path,
                      const AskedMounts& mounts, size_t own_volumes, cli::FlagReader& reader);

// Flags of Run:AI that Muster does not support. A flag that a program needs is refused, with
// advice; a flag that it does not need is checked, and a note states that it has no effect. No flag
// is ignored silently.

/// The notes ("--large-shm: ...") of flags without effect; reports faults of their values to `reader`.
std::vector<std::string> notes_of_idle_flags(cli::FlagReader& reader, bool on_kubernetes);

/// Reports the refused flags.
void refuse_unserved_flags(cli::FlagReader& reader);

}  // namespace muster::dialects::runai
