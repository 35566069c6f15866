// The typed facts that the engine reports of a gang: why it waits, what Slurm does to its
// allocation, and how the allocation ended.
//
// Pure, except that user names are looked up and the clock is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/allocation.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

// --- why it waits

AllocationPending wait_submitted(uint64_t job);
/// Slurm takes no more jobs at the moment; `why`: Slurm's sentence.
AllocationPending wait_rejected_for_now(const std::string& why);
/// Slurm has not listed its nodes yet, some of which the job is to avoid.
AllocationPending wait_for_nodes();
/// The answer to the submission was lost.
AllocationPending wait_unsure();
/// The job is pending: with Slurm's reason, its estimate, and its place in the queue.
AllocationPending wait_pending(const ListedJob& job);
/// The job has nodes, which Slurm still prepares, or of which `silent` have not called back yet.
/// `awaited_at`: where they call.
AllocationPending wait_starting(const ListedJob& job, const std::vector<std::string>& silent,
                                const std::string& awaited_at);
/// The job is queued again, and Slurm is still ending its earlier run.
AllocationPending wait_completing(const ListedJob& job);
/// Slurm is still ending the job of an earlier request.
AllocationPending wait_for_earlier(uint64_t job);
/// The controller does not answer. `before`: the previous reason; `job`: 0 if there is none yet;
/// `why`: what Slurm's programs have printed, which becomes the details.
AllocationPending wait_for_controller(const AllocationPending& before, uint64_t job,
                                      base::Time since, const std::string& why);

// --- what Slurm does to an allocation

job::SlurmState state_suspended(const ListedJob& job);
job::SlurmState state_ending(const ListedJob& job);
job::SlurmState state_controller_away(base::Time since);

// --- how an allocation ended

/// `nodes` have not called in time; empty: it is unknown which.
AllocationRevoked taken_nodes_late(uint64_t job, const std::vector<std::string>& nodes,
                                   std::chrono::milliseconds bound);
/// Slurm has queued the job again. `broken_node`: one of its nodes that is down; may be empty.
AllocationRevoked taken_requeued(uint64_t job, const std::string& broken_node);
/// The job is over. `was_allocated`: its tasks could run. State kUnknown: Slurm has forgotten it.
AllocationRevoked taken_job_over(const ListedJob& job, bool was_allocated);
AllocationRevoked taken_node_down(uint64_t job, const std::string& node);
/// The task's muster-node has been disconnected for too long.
AllocationRevoked taken_node_silent(uint64_t job, const std::string& node, const std::string& task);

}  // namespace muster::engine::slurm
