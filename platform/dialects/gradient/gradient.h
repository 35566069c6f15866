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
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/command/command.h"
#include "cli/connection/connection.h"

namespace muster::dialects::gradient {

/// Runs one command; `words` is without the program's own name. The exit code, as cli::run() has
/// them: other than Gradient's own program, errors are never exit code 0.
int run(const std::vector<std::string>& words, const cli::Hooks& hooks);

// What create and run leave in JobSpec::annotations: "gradient/" and the flag without its dashes,
// with what was said there ("gradient/workerMachineType": "p2.xlarge"), "gradient/name" and
// "gradient/experimentType" ("single", "GRPC", "MPI"). Passwords and keys are left out. A tag is a
// label without a value.
inline constexpr const char* kAnnotation = "gradient/";

// --optionsFile and --createOptionsFile: the flags of a command as a YAML file. Keys are the flags
// without their dashes; what stands on the command line wins.
//
//   name: dist
//   experimentEnv: {EPOCHS: 5}         a map becomes JSON
//   tag: [nightly, vision]             of what may be given several times: a list, or one alone
//   isPreemptible: true
//   datasets:                          in the place of datasetUri, datasetName, ...
//     - {uri: ./data, name: mnist}
//
// Pure.

/// Adds what the file says to `arguments`. kInvalid with every fault, each with its line: unknown
/// keys with the nearest one, wrong types, doubled keys.
base::Result<void> add_options(std::string_view text, const std::string& file,
                               const cli::Command& command, cli::Arguments& arguments);

/// Every flag of the command that is not hidden, with the value given or null.
std::string options_text(const cli::Command& command, const cli::Arguments& arguments);

}  // namespace muster::dialects::gradient
