// From what a gang needs to what Slurm is asked for: which tasks are alike and make a component,
// which partition, account and time limit, and where each task sits in the Slurm job.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
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

}  // namespace muster::engine::slurm
