// The command line of Run:AI over Muster's jobs: a pod is a task.
//
//   command_tree.h    every command and flag, as data; command_tree_submit.cc has those that submit
//   words.h           what Run:AI's flags take and CLI11 does not: --command sh, -g=1 (pure)
//   submission.h      the flags of submit, submit-mpi and submit-dist -> job::JobSpec (pure), with
//                     claims.h, master.h, volumes.h, and no_effect.h for what does nothing here
//   status.h, views.h how jobs are shown: statuses, tables, sentences (pure)
//   commands_*.cc     what each command does, over api::Client
//
// As cli.h: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "cli/sessions/sessions.h"

namespace muster::dialects::runai {

/// Runs one command; `words` is without the program's own name. The exit code, as cli::run() has
/// them.
int run(const std::vector<std::string>& words, const cli::Hooks& hooks);

// What a submission leaves in JobSpec::annotations beside those of --annotation.
inline constexpr const char* kCommandLine = cli::sessions::kTypedOfRunai;  ///< as it was typed
inline constexpr const char* kUser = "runai/user";          ///< of --user, where given
inline constexpr const char* kWorkload = "runai/workload";  ///< "mpi", "pytorch", "tf", "train"

}  // namespace muster::dialects::runai
