// What a rank measures for the search for slow ranks and links, and the metrics of a job of Muster
// to which rank 0 reports the result.
//
// Thread-safety: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "session/protocol.h"
#include "session/stragglers.h"
#include "world/world.h"

namespace muster::collective::session {

class LinkMeter {
 public:
  /// What this rank has sent to each rank since the last call, by the kernel's counters. The first
  /// call returns no links.
  LinkReport measure(const World& world, Deadline now);

 private:
  std::vector<LinkUse> before_;  // by rank: the totals at the last call
  Deadline measured_ = {};
};

/// Sends metrics() to the socket that MUSTER_METRICS names (docs/metrics.md). Never waits; without
/// the variable it does nothing.
void report_metrics(const Slowness& slowness);

}  // namespace muster::collective::session
