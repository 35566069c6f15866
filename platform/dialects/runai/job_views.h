// Jobs as text of Run:AI: ages, statuses, the output of `list` and `describe job`.
//
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"

namespace muster::dialects::runai {

/// One number with its largest unit, rounded down: "59s", "59m", "23h", "364d", "2y". A negative age is
/// "0s" up to a second, else "<invalid>".
std::string age_words(std::chrono::nanoseconds age);

/// The time since the job's submission.
std::string age_of(const job::Job& job, base::Time now);
/// The time since the task's start, or the job's submission if it never started.
std::string age_of(const job::Job& job, const job::Task& task, base::Time now);

/// How long the job has run; "0s" if it never ran.
std::string duration_of(const job::Job& job, base::Time now);

// Run:AI's statuses of jobs and pods (job-statuses in its documentation), and the counts of its
// listings.
//
//   Pending            waits in the queue, or one of its pods does
//   Init:0/1           the launcher waits until every worker answers
//   ContainerCreating  pods are being started
//   Running            all of its pods run
//   Suspended          suspended until `runai resume`
//   Terminating        is being evicted, suspended, stopped or deleted
//   Succeeded, Failed  ended
//   TimedOut           ended by its time limit
//   Stopped            stopped by a user and kept
//
// A job is Running only if all of its pods run. There is no "Preempted": an evicted job is Pending and
// starts again.

std::string status_of(const job::Job& job);

/// The status of a pod: Pending, Suspended, Init:0/1, ContainerCreating, Running, Terminating; when it
/// has ended, Completed, Error, OOMKilled, ContainerCannotRun, Unknown (its exit code is lost),
/// Terminated (it was stopped). N/A if the job ended before the pod started.
std::string status_of(const job::Job& job, const job::Task& task);

/// Train, Interactive, Interactive-Preemptible or Inference.
std::string type_of(const job::Job& job);

/// The user of the job; "-" if unknown.
std::string user_of(const job::Job& job);

struct PodCounts {
  int running = 0;
  int pending = 0;  ///< including pods that are being started
  int succeeded = 0;
  int failed = 0;

  bool operator==(const PodCounts&) const = default;
};
PodCounts count_pods(const job::Job& job);

struct GpuCounts {
  int64_t allocated_milli = 0;         ///< of running pods
  int64_t requested_milli = 0;         ///< of all pods
  int64_t requested_memory_bytes = 0;  ///< for claims of GPU memory

  bool operator==(const GpuCounts&) const = default;
};
GpuCounts count_gpus(const job::Job& job);

/// The node of all pods, "<multiple>", or "N/A".
std::string node_of(const job::Job& job);

/// Allocated and requested GPUs: "2 (2)"; "- (2)" for an ended job; "0.5 (0.5)"; "0 (8Gi)" for a claim
/// of GPU memory.
std::string gpus_of(const job::Job& job);

std::string job_list(const std::vector<job::Job>& jobs, base::Time now);

/// The job's properties, why it waits or failed, its pods and events. `wide`: pods with GPUs and exit
/// codes.
std::string job_description(const job::Job& job, base::Time now, bool wide);

/// The same as JSON: name, namespace, duration, status, trainer, chiefName, priority,
/// commandLine, instances [{status, name, age, node, chief}].
std::string job_description_json(const job::Job& job, base::Time now);

}  // namespace muster::dialects::runai
