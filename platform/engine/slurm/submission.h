// From what a gang needs to what Slurm is asked for: which tasks are alike and make a component,
// which partition, account and time limit, and where each task sits in the Slurm job.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/node/brief.h"
#include "engine/room.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Without script, folder, output and environment (node_script.h). kInvalid: what Slurm cannot
/// give, all of it at once.
base::Result<Submission> submission_for(const RoomWish& wish, const SlurmEngineOptions& options);

/// Where each task sits: consecutive tasks that need the same are one component. Those that claim
/// nothing, beside others that do, and a launcher that claims nothing and takes no ranks, are
/// guests on the first node of component 0: components of a heterogeneous job never share a node,
/// and a launcher is not worth one of its own.
std::vector<Seat> seats_for(const RoomWish& wish);

/// How many tasks are guests. Their number as a component is the one behind all components.
int guests_of(const RoomWish& wish);

/// What tells two submissions apart that are to be the same.
std::string shape_of(const Submission& submission);

/// "muster:OWNER:JOB:ATTEMPT".
std::string comment_for(const std::string& owner, const Gang& gang);
/// Whether a comment is one of that owner's.
bool is_comment_of(const std::string& owner, const std::string& comment);

// The batch script of a gang: one srun for each component, which starts a muster-node for each
// task and gives it what it needs to know (node_brief.h) on its standard input. Neither arguments
// nor the environment ever hold the key.
//
// Pure.

/// `guests`: tasks that share the first node of the first component. `programs`: their folder on
/// the nodes. `folder`: where what srun and muster-node have to say is appended to `slurm.out`, if
/// the node that runs the script may write there; empty: nowhere.
std::string node_script(const node::NodeBrief& brief, const std::vector<Component>& components,
                        int guests, const std::string& programs, const std::string& folder);

/// Of this process's environment (NAME=value) what such a script needs.
std::map<std::string, std::string> script_environment(const std::vector<std::string>& own);

inline constexpr const char* kScriptOutput = "slurm.out";

// What sbatch reads on its standard input: the batch script with a submission's options in #SBATCH
// lines. Nothing of a job is an argument of a program, and no value can become a line or an option
// of its own.
//
// Pure; thread-safe.

/// kInvalid: values that cannot be said to Slurm, all of them.
base::Result<std::string> batch_script(const Submission& submission);

/// Nodes that a component takes, and may do with.
int most_nodes(const Component& component);
int least_nodes(const Component& component);

}  // namespace muster::engine::slurm
