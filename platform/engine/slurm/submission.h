// From the request of a gang to the job that Slurm gets: which equal tasks form a component, which
// partition, account and time limit apply, where each task is in the Slurm job (its seat), and the
// batch script.
//
// The script runs one srun for each component. srun starts a muster-node for each task, which reads
// on its standard input how to reach the server (node/brief.h). The key is never in an argument or
// in the environment. With sbatch, all of a job is in the script's #SBATCH lines, and no value can
// become a line or an option of its own.
//
// Pure; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/allocation.h"
#include "engine/node/brief.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Without script, folder, output and environment. kInvalid: everything in the request that Slurm
/// cannot provide.
base::Result<Submission> submission_for(const AllocationRequest& request,
                                        const SlurmEngineOptions& options);

/// The seat of each task. Consecutive tasks with the same resources are one component. A task that
/// requests nothing in a gang where others do, and a launcher that requests nothing and takes no
/// ranks, is a guest on the first node of component 0: components of a heterogeneous job never
/// share a node, and a launcher does not need a node of its own.
std::vector<Seat> seats_for(const AllocationRequest& request);

/// The number of guests. As a component, guests have the number after the last component.
int guests_of(const AllocationRequest& request);

/// Identifies what a submission requests: equal for two attempts that request the same.
std::string shape_of(const Submission& submission);

/// "muster:OWNER:JOB:ATTEMPT".
std::string comment_for(const std::string& owner, const GangId& gang);
/// Whether a comment belongs to that owner.
bool is_comment_of(const std::string& owner, const std::string& comment);
/// Whether it belongs to an attempt of that job of the owner.
bool is_comment_of(const std::string& owner, const std::string& job_id, const std::string& comment);

/// The batch script. `guests`: the number of guests. `programs`: the folder of Muster's programs on
/// the nodes. `folder`: if the node that runs the script can write there, the output of srun and
/// muster-node is appended to kScriptOutput in it; empty: the output is dropped.
std::string node_script(const node::NodeBrief& brief, const std::vector<Component>& components,
                        int guests, const std::string& programs, const std::string& folder);

/// The variables of this process (NAME=value) that the script needs.
std::map<std::string, std::string> script_environment(const std::vector<std::string>& own);

inline constexpr const char* kScriptOutput = "slurm.out";

/// The standard input of sbatch: the script with the submission's options in #SBATCH lines.
/// kInvalid: all values that cannot be written there.
base::Result<std::string> batch_script(const Submission& submission);

/// The nodes that a component requests, and the fewest that will do.
int most_nodes(const Component& component);
int least_nodes(const Component& component);

}  // namespace muster::engine::slurm
