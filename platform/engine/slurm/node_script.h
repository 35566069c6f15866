// The batch script of a gang: one srun for each component, which starts a muster-node for each
// task and gives it what it needs to know (node_brief.h) on its standard input. Neither arguments
// nor the environment ever hold the key.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/slurm/node_brief.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// `guests`: tasks that share the first node of the first component. `programs`: their folder on
/// the nodes. `folder`: where what srun and muster-node have to say is appended to `slurm.out`, if
/// the node that runs the script may write there; empty: nowhere.
std::string node_script(const NodeBrief& brief, const std::vector<Component>& components,
                        int guests, const std::string& programs, const std::string& folder);

/// Of this process's environment (NAME=value) what such a script needs.
std::map<std::string, std::string> script_environment(const std::vector<std::string>& own);

inline constexpr const char* kScriptOutput = "slurm.out";

}  // namespace muster::engine::slurm
