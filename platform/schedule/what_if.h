// When the waiting gangs would start on a changed cluster: a scheduler with the same state plans on a
// virtual clock, in which running gangs end by their time limits, or after an assumed run time.
//
// Pure. The result is a forecast: gangs that are submitted later are unknown, and programs end
// earlier than their limits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/scheduler.h"

namespace muster::schedule {

struct RunningGang {
  Gang gang;
  std::vector<std::optional<TaskPlace>> places;  ///< by task
  Time started;
};

struct ClusterState {
  Options options;
  std::vector<Node> nodes;
  std::vector<Project> projects;
  std::vector<RunningGang> running;
  std::vector<Gang> waiting;
};

struct WhatIfOptions {
  Time now;
  /// How long a gang without a time limit runs; nothing: it never ends.
  std::optional<Milliseconds> run_time;
  Milliseconds horizon = std::chrono::hours(24 * 7);  ///< later starts are not looked for
  int most_plans = 2000;
};

struct WhatIfResult {
  std::map<std::string, Time> starts;  ///< of the waiting gangs that start in time, by id
  int evictions = 0;                   ///< of running gangs
  bool complete = true;                ///< false: stopped after WhatIfOptions::most_plans
};

WhatIfResult what_if(const ClusterState& cluster, const WhatIfOptions& options);

}  // namespace muster::schedule
