// The command line of Paperspace Gradient over Muster's jobs: an experiment is a job.
//
//   command_tree.h     every command and flag, as data; command_tree_create.cc has create and run
//   experiment.h       the flags of create and run -> Experiment -> job::JobSpec (pure)
//   options_file.h     --optionsFile and --createOptionsFile
//   state.h, views.h   how jobs are shown: states, tables, sentences (pure)
//   commands_*.cc      what each command does, over api::Client
//
// As cli.h: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection/hooks.h"

namespace muster::dialects::gradient {

/// Runs one command; `words` is without the program's own name. The exit code, as cli::run() has
/// them: other than Gradient's own program, errors are never exit code 0.
int run(const std::vector<std::string>& words, const cli::Hooks& hooks);

// What create and run leave in JobSpec::annotations: "gradient/" and the flag without its dashes,
// with what was said there ("gradient/workerMachineType": "p2.xlarge"), "gradient/name" and
// "gradient/experimentType" ("single", "GRPC", "MPI"). Passwords and keys are left out. A tag is a
// label without a value.
inline constexpr const char* kAnnotation = "gradient/";

}  // namespace muster::dialects::gradient
