// The command line of Run:AI over Muster's jobs: a pod is a task.
//
//   command_tree.h    every command and flag, as data
//   words.h           Run:AI's spellings of flags, such as -g=1 and --command sh (pure)
//   submission.h      the flags of submit, submit-mpi and submit-dist -> job::JobSpec (pure), with
//                     resources.h and volumes.h
//   job_views.h, cluster_views.h   jobs, nodes and projects as text (pure)
//   commands.h        the commands, over api::Client
//
// As cli.h: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "cli/sessions/sessions.h"

namespace muster::dialects::runai {

/// Runs one command; `words` without the program's name. Returns an exit code of cli::run().
int run(const std::vector<std::string>& words, const cli::Hooks& hooks);

// Annotations that a submission sets besides those of --annotation.
inline constexpr const char* kCommandLine =
    cli::sessions::kTypedOfRunai;                           ///< the command line as typed
inline constexpr const char* kUser = "runai/user";          ///< of --user, if given
inline constexpr const char* kWorkload = "runai/workload";  ///< "mpi", "pytorch", "tf", "train"

}  // namespace muster::dialects::runai
