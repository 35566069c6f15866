// Allocations for gangs on a cluster with a queue of its own, such as Slurm. Muster's scheduler
// does not plan there: gangs wait in the queue of the cluster, which reports why.
//
//   request_allocation(gang, request)  ->  AllocationPending, at each change
//                                      ->  AllocationGranted once, or AllocationRefused
//   start(gang, tasks) ...             ->  AllocationStateChange, while the cluster suspends the
// gang
//                                      ->  AllocationRevoked, if the cluster takes it back
//   release_allocation(gang)           ->  no further report
//
// Plain values.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "engine/image_request.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::engine {

/// The part of an allocation that a task requests.
struct TaskRequest {
  std::string task;
  job::TaskRole role = job::TaskRole::kSingle;
  job::Resources resources;     ///< on one node
  bool may_be_missing = false;  ///< a worker above the minimum of an elastic job
  bool only_launches = false;   ///< a launcher without ranks of its own

  bool operator==(const TaskRequest&) const = default;
};

/// A request for an allocation: granted as a whole, except for tasks that may be missing.
struct AllocationRequest {
  std::string job;  ///< name of the job, shown in the cluster's queue
  std::string project;
  std::vector<TaskRequest> tasks;       ///< in the order of the job
  std::vector<std::string> node_pools;  ///< any of these; empty: the cluster's default
  std::vector<std::string> gpu_models;  ///< any of these; empty: any
  std::vector<std::string> avoided_nodes;
  std::optional<std::chrono::milliseconds> time_limit;  ///< of the job
  std::chrono::milliseconds grace{0};                   ///< between SIGTERM and SIGKILL
  std::chrono::milliseconds start_timeout{0};           ///< counted from AllocationGranted
  job::SlurmSpec slurm;
  /// Of all tasks, without nodes: for an engine that runs pods, else empty.
  std::vector<ImageRequest> images = {};

  bool operator==(const AllocationRequest&) const = default;
};

/// The request waits in the cluster's queue, or the cluster does not answer.
struct AllocationPending {
  job::Reason reason;                   ///< usually job::SlurmWaits
  std::optional<base::Time> may_start;  ///< the cluster's estimate
  std::string constraint;  ///< the cluster's own name of the reason: "QOSMaxGRESPerUser"

  bool operator==(const AllocationPending&) const = default;
};

/// The place of one task.
struct AllocatedPlace {
  std::string task;
  std::string node;  ///< one of nodes()
  std::vector<int> devices;

  bool operator==(const AllocatedPlace&) const = default;
};

/// The allocation is granted, and Muster's program on each of its nodes is ready to start tasks.
struct AllocationGranted {
  /// A place for each task, except for the last ones that may be missing.
  std::vector<AllocatedPlace> places;
  uint64_t slurm_job = 0;  ///< the Slurm job of the allocation

  bool operator==(const AllocationGranted&) const = default;
};

/// The request can never be granted as it is. Nothing of it is left.
struct AllocationRefused {
  base::Error error;
};

/// The cluster has suspended the gang. Without a state: the gang continues.
struct AllocationStateChange {
  std::optional<job::SlurmState> state;

  bool operator==(const AllocationStateChange&) const = default;
};

/// The cluster has revoked the allocation, or one that it was about to grant: a waiting gang may
/// get this too, if one of its nodes never connected. A TaskEnded with status lost follows for each
/// started task that had not ended. To continue, the caller requests an allocation for the next
/// attempt, and then gives this one back.
struct AllocationRevoked {
  enum class Why {
    kEvicted,    ///< preempted or requeued: the job should be requested again
    kNodeLost,   ///< a node failed: the same, if the job's retry rules allow it
    kCancelled,  ///< a person cancelled it in the cluster: do not request it again
    kFailed,     ///< it exceeded its time limit or its memory
  };
  Why why = Why::kFailed;
  job::AllocationEnd end;
  std::string advice;                ///< may be empty
  std::string node;                  ///< kNodeLost: the node, if known
  std::vector<std::string> printed;  ///< last lines of the program that started the tasks

  bool operator==(const AllocationRevoked&) const = default;
};

using AllocationNews = std::variant<AllocationPending, AllocationGranted, AllocationRefused,
                                    AllocationStateChange, AllocationRevoked>;

}  // namespace muster::engine
