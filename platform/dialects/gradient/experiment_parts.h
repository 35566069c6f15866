// What single- and multi-node experiments have in common, read one part after the other.
//
// Pure; for experiment.cc alone.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "dialects/gradient/experiment.h"

namespace muster::dialects::gradient {

/// The one text of flags that are names of the same; a fault where they say different things.
std::string one_of(const std::vector<std::string>& flags, cli::FlagReader& reader);

/// --experimentEnv: a JSON object. "secret:NAME" is a secret of the project.
void read_environment(cli::FlagReader& reader, job::JobSpec& spec);

/// --workspace and its former names, --workingDirectory, /storage, --artifactDirectory.
void read_places(cli::FlagReader& reader, Experiment& experiment);

/// --datasetUri and its neighbours, zipped by their position.
void read_datasets(cli::FlagReader& reader, Experiment& experiment);

/// --tag and --tags.
void read_tags(cli::FlagReader& reader, job::JobSpec& spec);

/// --modelPath, which the model's type must stand beside. (What is said there, and what holds where
/// nothing is said, every task is told: launch/contract_environment.h.)
void read_model(cli::FlagReader& reader, Experiment& experiment);

/// Keeps what was said, but for what is secret, and notes what does nothing here.
/// `path`: of the command.
void keep_words(const std::vector<std::string>& path, const cli::FlagReader& reader,
                Experiment& experiment);

}  // namespace muster::dialects::gradient
