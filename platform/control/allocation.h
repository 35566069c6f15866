// The request of a job to a cluster, the allocation that it grants, and how both are shown.
//
// Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/schedule_view.h"
#include "engine/allocation.h"
#include "job/job.h"

namespace muster::control {

/// The allocation that the job's next attempt needs. `closed`: nodes that take no new tasks, beside
/// the nodes that the job avoids.
engine::AllocationRequest allocation_request(const job::Job& job,
                                             const std::set<std::string>& closed);

/// kRefused: the spec requires a topology level, which clusters cannot be asked for. `cluster`: its
/// name, for the message.
base::Result<void> check_topology(const job::JobSpec& spec, const std::string& cluster);

/// The claims of all tasks of a waiting job, optional workers included.
schedule::Amounts requested_amounts(const job::Job& job);

/// A line for the tasks of the request, and one for each restriction: "launcher (2 CPUs), 4 workers
/// (1 GPU and 8 CPUs each)", "in node pool a100", "for 2h at the most".
std::vector<std::string> describe(const engine::AllocationRequest& request);

/// The places of the job's tasks, by seat; nothing for an optional worker without one. kInternal:
/// the allocation does not match the request.
base::Result<SeatPlaces> places_in(const engine::AllocationGranted& allocation,
                                   const job::Job& job);

/// Whether two reasons to wait differ at most in times, estimates and the number of the Slurm job.
bool is_same_wait(const job::Fact& one, const job::Fact& other);

}  // namespace muster::control
