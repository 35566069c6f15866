// The environment that Slurm's programs are run in: that of the server, without what would change
// what they print or ask for.
//
// Pure; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::engine::slurm {

/// NAME=value, as the result is. Of Slurm's own variables only those that say where the cluster is
/// and who asks; times are in UTC.
std::vector<std::string> environment_for_asking(const std::vector<std::string>& own);

/// For sbatch, which hands its environment to the script: what the script is to have, and what says
/// where the cluster is.
std::vector<std::string> environment_for_submitting(
    const std::vector<std::string>& own, const std::map<std::string, std::string>& script);

}  // namespace muster::engine::slurm
