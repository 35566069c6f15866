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
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/command/command.h"

namespace muster::dialects::gradient {

/// Adds what the file says to `arguments`. kInvalid with every fault, each with its line: unknown
/// keys with the nearest one, wrong types, doubled keys.
base::Result<void> add_options(std::string_view text, const std::string& file,
                               const cli::Command& command, cli::Arguments& arguments);

/// Every flag of the command that is not hidden, with the value given or null.
std::string options_text(const cli::Command& command, const cli::Arguments& arguments);

}  // namespace muster::dialects::gradient
