// A list of jobs as a cluster has seen them (or may see them): when each came, how long it takes,
// what it needs. trace_replay.h runs it through the scheduler.
//
// Pure: text in, values out.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::simulate {

using std::chrono::milliseconds;

struct TraceJob {
  int line = 0;            ///< of the file
  milliseconds submit{0};  ///< from the beginning of the trace
  milliseconds duration{0};
  int gpus = 0;             ///< whole ones of each task; 0 where it asks for a part of one
  int gpu_share_milli = 0;  ///< 1 to 999: a part of one
  int64_t cpu_milli = 0;    ///< of each task
  int64_t memory_bytes = 0;
  /// Nothing: one, or, where no node has so many GPUs, as few as share them evenly.
  std::optional<int> tasks;
  std::string project;
  int priority = 50;  ///< from 100 on it is never evicted, and stays within its project's quota
  std::optional<milliseconds> time_limit;  ///< known to the scheduler, unlike `duration`

  bool operator==(const TraceJob&) const = default;
};

/// Comma-separated values with the columns submit_s, duration_s, gpus, project and, where wanted,
/// tasks, cpus, memory, priority, time_limit_s; an empty cell of these means the default. GPUs,
/// CPUs and memory are those of each task. In the order of the file.
///
/// Errors: kInvalid, with every fault and its line.
base::Result<std::vector<TraceJob>> parse_trace(std::string_view text);

}  // namespace muster::simulate
