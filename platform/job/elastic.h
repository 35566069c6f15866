// What an elastic job is: one that may run with fewer workers than it asks for, and whose workers
// come and go while it runs.
//
// Pure.
#pragma once

#include "job/job.h"

namespace muster::job {

inline bool is_elastic(const JobSpec& spec) {
  return spec.scheduling.min_workers.value_or(spec.workers) < spec.workers;
}

/// With how few workers a job of this kind can be told to run: a launcher needs one to start ranks
/// in; a master, a chief trains by itself.
inline int fewest_workers(Kind kind) {
  return kind == Kind::kMpi ? 1 : 0;
}

/// Whether a task has left its job and ended: it holds nothing any more, though it is still listed
/// with the place that it had.
inline bool has_gone(const Task& task) {
  return task.left && task.phase == TaskPhase::kEnded;
}

}  // namespace muster::job
