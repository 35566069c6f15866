// How many workers a job has, and what its master (launcher, chief) has of its own.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "job/spec.h"

namespace muster::dialects::runai {

/// The flag that says how many workers there are: --processes, --num-processes or --workers.
std::string workers_flag(const cli::FlagReader& reader, const std::vector<std::string>& path);

void read_workers(cli::FlagReader& reader, const std::vector<std::string>& path,
                  job::JobSpec& spec);

/// REQUIRES: the command, the arguments and the resources of `spec` have been read.
void read_master(cli::FlagReader& reader, job::JobSpec& spec);

}  // namespace muster::dialects::runai
