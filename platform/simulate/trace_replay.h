// Runs a trace through the scheduler on a virtual clock, from event to event: what the same jobs
// would have seen on this cluster, with these quotas, under this policy.
//
// A job runs while all of its tasks do. One that is evicted leaves at once and waits again; what it
// had done is lost, unless jobs keep checkpoints. One whose time limit is shorter than its duration
// is ended by it.
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

/// More would not fit into memory together with what runs on them.
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
  int64_t cpu_milli_per_node = 0;  ///< 0: as many as anybody asks for
  int64_t memory_per_node = 0;     ///< the same
  /// Those of the trace that are not named have no quota and weight 1. Where none is named, all
  /// have equal quotas.
  std::vector<TraceProject> projects;
  schedule::Policy policy = schedule::Policy::kFair;
  bool checkpoint = false;  ///< an evicted job goes on where it was, when it starts again
};

struct Distribution {
  milliseconds mean{0};
  milliseconds p50{0};
  milliseconds p90{0};
  milliseconds p99{0};

  bool operator==(const Distribution&) const = default;
};

struct TraceSummary {
  int jobs = 0;          ///< that ended
  Distribution waiting;  ///< of a job: all the time from submission to end in which it did not run
  Distribution completion;      ///< from submission to end
  double gpu_seconds = 0;       ///< held, lost work included
  double lost_gpu_seconds = 0;  ///< held by what was evicted and done again
  int preemptions = 0;          ///< evictions for another job
  int moves = 0;                ///< evictions that started again elsewhere
  int limited = 0;              ///< ended by their time limit
};

/// From `time` on.
struct TracePoint {
  milliseconds time{0};
  int waiting = 0;  ///< jobs
  int64_t gpu_milli_used = 0;

  bool operator==(const TracePoint&) const = default;
};

/// A job that did not run, and why, in the scheduler's words.
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
  std::vector<TraceOutcast> refused;  ///< that no node could ever hold
  std::vector<TraceOutcast> stuck;    ///< that still waited when all others had ended
};

/// Errors: kInvalid, for a setup that makes no sense, with every fault named after its flag.
base::Result<TraceReport> replay(const std::vector<TraceJob>& jobs, const TraceSetup& setup);

// A picture of a replay: how many jobs wait and how much of the cluster is used, over time. An SVG
// file of its own, readable on light and on dark ground.
//
// Pure: values in, text out.

/// `title` is plain text.
std::string chart_of(const TraceReport& report, std::string_view title);

}  // namespace muster::simulate
