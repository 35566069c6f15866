// Replays a trace with the scheduler on a virtual clock: the waiting times and utilisation of these
// jobs on a given cluster, with given quotas and policy.
//
// A job runs while all of its tasks run. An evicted job leaves at once and waits again; its work is
// lost, unless jobs write checkpoints. A time limit that is shorter than the duration ends a job.
//
// Pure and deterministic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/scheduler.h"
#include "simulate/trace.h"

namespace muster::simulate {

/// A bound of memory use.
inline constexpr int kMostTraceNodes = 100'000;

struct TraceProject {
  std::string name;
  int64_t quota_milli = 0;  ///< thousandths of GPUs
  double weight = 1;

  bool operator==(const TraceProject&) const = default;
};

struct TraceSetup {
  int nodes = 1;
  int gpus_per_node = 8;
  int64_t cpu_milli_per_node = 0;  ///< 0: enough for all jobs
  int64_t memory_per_node = 0;     ///< the same
  /// Other projects of the trace have no quota and weight 1. If this is empty, all have equal
  /// quotas.
  std::vector<TraceProject> projects;
  schedule::Policy policy = schedule::Policy::kFair;
  bool checkpoint = false;  ///< an evicted job continues where it was when it starts again
};

struct Distribution {
  milliseconds mean{0};
  milliseconds p50{0};
  milliseconds p90{0};
  milliseconds p99{0};

  bool operator==(const Distribution&) const = default;
};

struct TraceSummary {
  int jobs = 0;                 ///< number of ended jobs
  Distribution waiting;         ///< of a job: from submission to end, without its run time
  Distribution completion;      ///< from submission to end
  double gpu_seconds = 0;       ///< held, including lost work
  double lost_gpu_seconds = 0;  ///< held for work that was repeated after an eviction
  int preemptions = 0;          ///< evictions for another job
  int moves = 0;                ///< evictions that restarted at once on other nodes
  int limited = 0;              ///< ended by their time limit
};

/// The state from `time` on.
struct TracePoint {
  milliseconds time{0};
  int waiting = 0;  ///< jobs
  int64_t gpu_milli_used = 0;

  bool operator==(const TracePoint&) const = default;
};

/// A job that did not run, with the scheduler's reason.
struct TraceOutcast {
  int line = 0;
  std::string reason;

  bool operator==(const TraceOutcast&) const = default;
};

struct TraceReport {
  TraceSummary all;
  struct OfProject {
    std::string name;
    int64_t quota_milli = 0;
    TraceSummary summary;
  };
  std::vector<OfProject> projects;  ///< in the order of their first jobs
  milliseconds makespan{0};         ///< from the first submission to the last end
  int64_t gpu_milli = 0;            ///< of the cluster
  double utilisation = 0;           ///< of its GPUs over the makespan, 0 to 1
  std::vector<TracePoint> timeline;
  std::vector<TraceOutcast> refused;  ///< jobs that never fit
  std::vector<TraceOutcast> stuck;    ///< jobs still waiting when all others had ended
};

/// Errors: kInvalid: the setup is inconsistent; with all faults, named after their flags.
base::Result<TraceReport> replay(const std::vector<TraceJob>& jobs, const TraceSetup& setup);

/// A chart of a replay: waiting jobs and used GPUs over time, as an SVG file, readable on light and
/// dark backgrounds. `title`: plain text.
std::string chart_of(const TraceReport& report, std::string_view title);

}  // namespace muster::simulate
