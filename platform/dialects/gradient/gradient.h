// The command line of Paperspace Gradient over Muster's jobs: an experiment is a job.
//
//   command_tree.h        every command and flag, as data
//   experiment.h          the flags of create and run -> Experiment -> job::JobSpec (pure)
//   views.h, metrics.h    jobs and metrics as tables and text (pure)
//   commands.h            the commands, over api::Client
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

/// Runs one command; `words` without the program's name. Returns an exit code of cli::run(): unlike
/// Gradient's own program, it is never 0 after an error.
int run(const std::vector<std::string>& words, const cli::Hooks& hooks);

// The prefix of the annotations that create and run set: "gradient/" and the flag without its dashes,
// with the flag's value ("gradient/workerMachineType": "p2.xlarge"), "gradient/name" and
// "gradient/experimentType" ("single", "GRPC", "MPI"). Passwords and keys are not stored. A tag is a
// label without a value.
inline constexpr const char* kAnnotation = "gradient/";

// --optionsFile and --createOptionsFile: the flags of a command as a YAML file. Keys are the flags
// without their dashes; the command line overrides the file.
//
//   name: dist
//   experimentEnv: {EPOCHS: 5}         a map becomes JSON
//   tag: [nightly, vision]             flags that repeat: a list or a single value
//   isPreemptible: true
//   datasets:                          instead of datasetUri, datasetName, ...
//     - {uri: ./data, name: mnist}
//
// Pure.

/// Adds the flags of the file to `arguments`. Errors: kInvalid, with all faults and their lines: unknown
/// keys, wrong types, repeated keys.
base::Result<void> add_options(std::string_view text, const std::string& file,
                               const cli::Command& command, cli::Arguments& arguments);

/// All visible flags of the command, with the given value or null.
std::string options_text(const cli::Command& command, const cli::Arguments& arguments);

}  // namespace muster::dialects::gradient
