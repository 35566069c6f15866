// The environment of Slurm's programs: the server's, without the variables that change what the
// programs print. engine/program_runner.h runs them.
//
// Pure; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::engine::slurm {

/// The environment (lines NAME=value) for programs that list. Of Slurm's variables, only those that
/// identify the cluster and the user are kept; times are in UTC.
std::vector<std::string> environment_for_asking(const std::vector<std::string>& own);

/// The environment for sbatch, which passes it to the script: the script's variables, and those
/// that identify the cluster.
std::vector<std::string> environment_for_submitting(
    const std::vector<std::string>& own, const std::map<std::string, std::string>& script);

}  // namespace muster::engine::slurm
