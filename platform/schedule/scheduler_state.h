// What stands behind the Scheduler's interface; for the files that implement it.
#pragma once

#include "schedule/cluster.h"
#include "schedule/cycle.h"

namespace muster::schedule {

struct Scheduler::State : Cluster {
  /// The plan of this number, with nothing in it yet.
  Cycle cycle(Time now, uint64_t number) const {
    return {.options = options,
            .projects = project_named,
            .now = now,
            .number = number,
            .plan = {},
            .trials_left = 0};
  }
};

}  // namespace muster::schedule
