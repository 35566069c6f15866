// Ages as Run:AI shows them: one number and its largest unit, what is left cut off.
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

/// "59s", "59m", "23h", "364d", "2y". A clock that is up to a second behind gives "0s"; more of it,
/// "<invalid>".
std::string age_words(std::chrono::nanoseconds age);

/// Since it was submitted.
std::string age_of(const job::Job& job, base::Time now);
/// Since it was started, or else its job submitted.
std::string age_of(const job::Job& job, const job::Task& task, base::Time now);

/// How long it has run, or ran; "0s" where it never did.
std::string duration_of(const job::Job& job, base::Time now);

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

// Jobs as Run:AI's `list` and `describe job` print them: columns padded with two blanks, without
// borders.
//
// Pure.

/// "2 (2)": allocated and requested; "- (2)" of a job that has ended; "0.5 (0.5)"; "0 (8Gi)" where
/// GPU memory is asked for.
std::string gpus_of(const job::Job& job);

std::string job_list(const std::vector<job::Job>& jobs, base::Time now);

/// What it is, why it waits or failed, its pods and its events. `wide`: the pods with their GPUs
/// and how they ended.
std::string job_description(const job::Job& job, base::Time now, bool wide);

/// The same, as programs read it: name, namespace, duration, status, trainer, chiefName, priority,
/// commandLine, instances [{status, name, age, node, chief}].
std::string job_description_json(const job::Job& job, base::Time now);

}  // namespace muster::dialects::runai
