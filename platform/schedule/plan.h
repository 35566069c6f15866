// The output of the scheduler: which tasks start where, which are evicted and why, and why the
// other gangs wait.
//
// Plain values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/fact.h"
#include "schedule/ledger.h"
#include "schedule/model.h"
#include "schedule/nodes.h"

namespace muster::schedule {

/// Tasks of a gang that start now. The first start of a gang contains its minimum; a later one adds
/// tasks to an elastic gang or restarts moved tasks.
struct PlannedStart {
  std::string id;
  std::vector<int> tasks;
  std::vector<TaskPlace> places;  ///< by entry of `tasks`

  bool operator==(const PlannedStart&) const = default;
};

enum class EvictionCause {
  kReclaimed,  ///< another project claims its share
  kPreempted,  ///< a more important gang of the same project
  kMoved,      ///< it restarts at once on other nodes, so that another gang fits
  kStale,      ///< it has run below its minimum for longer than Options::stale_grace
};

std::string_view to_string(EvictionCause cause);

/// Tasks that have to end: all tasks of the gang, or, of an elastic gang, some above its minimum.
/// They hold their resources until Scheduler::released(). The tasks in `moved` have a promise
/// elsewhere.
struct Eviction {
  std::string id;
  std::vector<int> tasks;
  std::vector<int> moved;  ///< a subset of `tasks`; all of them if the cause is kMoved
  EvictionCause cause = EvictionCause::kReclaimed;
  std::string by;     ///< the gang that gets the resources; empty if stale
  job::Eviction why;  ///< the reason with its amounts, for the victim's events

  bool operator==(const Eviction&) const = default;
};

enum class Constraint {
  kNone,       ///< not examined yet
  kProject,    ///< its project is unknown or has subprojects
  kLimit,      ///< its project or an ancestor is at its limit
  kQuota,      ///< it is not preemptible, and its project has no quota left
  kRoom,       ///< it does not fit on the nodes
  kTopology,   ///< it fits in no domain of its required topology level
  kReserved,   ///< the free resources are reserved for another gang
  kReleasing,  ///< it has a promise, and other tasks are still leaving
  kNever,      ///< it does not fit even on an empty cluster
  kDelayed,    ///< it failed, and does not start again before a certain time
  kTurn,       ///< resources are free, but other gangs are served first
};

std::string_view to_string(Constraint constraint);

/// Why a gang waits.
struct WaitVerdict {
  Constraint constraint = Constraint::kNone;
  job::Reason reason;             ///< includes the holders of the resources if requested
  std::optional<Time> may_start;  ///< if running gangs end by their time limits

  bool operator==(const WaitVerdict&) const = default;
};

struct WaitingGang {
  std::string id;
  /// Shared by all gangs with this verdict, which may be a hundred thousand. So OverCapacity::job
  /// is empty: the reader fills in the gang's name. Never nullptr.
  std::shared_ptr<const WaitVerdict> verdict;

  bool operator==(const WaitingGang& other) const {
    return id == other.id && *verdict == *other.verdict;
  }
};

struct Plan {
  std::vector<Eviction> evictions;
  std::vector<PlannedStart> starts;
  std::vector<PlannedStart> promises;  ///< new ones: they start when the evicted tasks have ended
  std::vector<WaitingGang> waits;      ///< gangs whose reason changed since the last plan
  /// When to plan again even without changes: a grace period or a minimum run time ends.
  std::optional<Time> again_at;

  bool operator==(const Plan&) const = default;
};

}  // namespace muster::schedule
