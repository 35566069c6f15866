// What Run:AI calls the state of a job and of its pods (job-statuses of its documentation), and
// what its listings count.
//
//   Pending            waits in the queue, or one of its pods still does
//   Init:0/1           the launcher waits until every worker answers
//   ContainerCreating  pods are being started
//   Running            all of its pods run
//   Suspended          held back until `runai resume`
//   Terminating        is being evicted, suspended, stopped or deleted
//   Succeeded, Failed  ended
//   TimedOut           ended by its time limit
//   Stopped            ended by somebody who stopped it and kept it
//
// A job says the state of all of its pods: one whose launcher runs while a worker waits is not
// Running. There is no "Preempted": whatever is evicted here is Pending again, and starts again.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

#include "job/job.h"

namespace muster::dialects::runai {

std::string status_of(const job::Job& job);

/// Of a pod: Pending, Suspended, Init:0/1, ContainerCreating, Running, Terminating; ended:
/// Completed, Error, OOMKilled, ContainerCannotRun, Unknown (nobody saw its end), Terminated (it
/// was told to end). N/A where the job ended before it began.
std::string status_of(const job::Job& job, const job::Task& task);

/// Train, Interactive, Interactive-Preemptible or Inference.
std::string type_of(const job::Job& job);

/// Who is shown as the user; "-" where nobody is known.
std::string user_of(const job::Job& job);

struct PodCounts {
  int running = 0;
  int pending = 0;  ///< or being started
  int succeeded = 0;
  int failed = 0;

  bool operator==(const PodCounts&) const = default;
};
PodCounts count_pods(const job::Job& job);

struct GpuCounts {
  int64_t allocated_milli = 0;         ///< of what runs
  int64_t requested_milli = 0;         ///< of all pods
  int64_t requested_memory_bytes = 0;  ///< where parts of GPUs are asked for by their memory

  bool operator==(const GpuCounts&) const = default;
};
GpuCounts count_gpus(const job::Job& job);

/// The one node of its pods, "<multiple>", or "N/A".
std::string node_of(const job::Job& job);

}  // namespace muster::dialects::runai
