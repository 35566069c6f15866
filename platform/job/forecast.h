// Why a job waits, and the forecast for a job that was not submitted yet.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "job/project.h"

namespace muster::job {

/// Why a job waits, or its state, and its scheduling events.
struct Explanation {
  std::string name;
  Phase phase = Phase::kQueued;
  std::string constraint;  ///< "room", "limit", "quota" ...: stable, for programs; empty: it runs
  Reason reason;
  std::optional<base::Time> may_start;
  int position = 0;           ///< in the queue, from 1; 0: it does not wait
  std::vector<Event> events;  ///< its scheduling events: placements, evictions, reasons for waiting

  bool operator==(const Explanation&) const = default;
};

/// The future place of a task.
struct Placing {
  std::string task;
  std::string node;
  std::vector<int> devices;
  int gpu_share_milli = 0;

  bool operator==(const Placing&) const = default;
};

/// A job that would be evicted for another.
struct ExpectedEviction {
  JobRef job;
  Eviction why;

  bool operator==(const ExpectedEviction&) const = default;
};

/// The answer to submit --dry-run. Nothing was stored.
struct Forecast {
  int members = 0;  ///< of the array, of which this is the first member; 0: it is no array
  bool starts_now = false;
  std::vector<Placing> placing;  ///< where it would start now
  std::vector<ExpectedEviction> evictions;
  bool hides_evictions = false;  ///< some evicted jobs are hidden from the reader
  Reason reason;                 ///< why it would wait
  std::optional<base::Time> may_start;
  ProjectStatus before;
  ProjectStatus after;

  bool operator==(const Forecast&) const = default;
};

}  // namespace muster::job
