// What the scheduler answers: who starts where, who must go and why, and why the others wait.
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

/// These tasks of a gang start now. The first start of a gang holds its minimum; a later one adds
/// tasks to an elastic gang, or starts again what was moved.
struct Start {
  std::string id;
  std::vector<int> tasks;
  std::vector<TaskPlace> places;  ///< by entry of `tasks`

  bool operator==(const Start&) const = default;
};

enum class EvictionCause {
  kReclaimed,  ///< another project claims its share
  kPreempted,  ///< a more important gang of the same project
  kMoved,      ///< it starts again elsewhere, at once, so that another finds room
  kStale,      ///< it has run below its minimum for longer than the grace
};

std::string_view to_string(EvictionCause cause);

/// These tasks have to end; all of a gang's, unless it is elastic and keeps its minimum. They hold
/// their room until Scheduler::released(). Those that `moved` lists are promised room elsewhere.
struct Eviction {
  std::string id;
  std::vector<int> tasks;
  std::vector<int> moved;  ///< of `tasks`: all of them where the cause is kMoved
  EvictionCause cause = EvictionCause::kReclaimed;
  std::string by;     ///< the gang that the room is for; empty where it is stale
  job::Eviction why;  ///< by whom and why, with the numbers, for the victim's events

  bool operator==(const Eviction&) const = default;
};

enum class Constraint {
  kNone,       ///< it has not been looked at yet
  kProject,    ///< it is unknown, or has projects below it
  kLimit,      ///< its project, or one above, is at its limit
  kQuota,      ///< not preemptible, and its project has no quota left
  kRoom,       ///< no node, or not enough of them, has what it asks for
  kTopology,   ///< no domain of the level it requires has
  kReserved,   ///< what is free is kept for a gang that has waited longer
  kReleasing,  ///< its place is promised to it, and still being left by others
  kNever,      ///< no node could ever hold it
};

std::string_view to_string(Constraint constraint);

/// Why a gang waits.
struct Verdict {
  Constraint constraint = Constraint::kNone;
  job::Reason reason;             ///< with who holds what it needs, where that was asked
  std::optional<Time> may_start;  ///< if those that run end by their time limits

  bool operator==(const Verdict&) const = default;
};

struct Wait {
  std::string id;
  /// Shared by all that are told the same, for they may be a hundred thousand; never nullptr.
  std::shared_ptr<const Verdict> verdict;

  bool operator==(const Wait& other) const { return id == other.id && *verdict == *other.verdict; }
};

struct Plan {
  std::vector<Eviction> evictions;
  std::vector<Start> starts;
  std::vector<Start> promises;  ///< new ones: will start there once what is evicted has gone
  std::vector<Wait> waits;      ///< those whose reason is another than in the plan before
  /// When to plan again though nothing happens: a grace that ends, a minimum run time that is over.
  std::optional<Time> again_at;

  bool operator==(const Plan&) const = default;
};

}  // namespace muster::schedule
