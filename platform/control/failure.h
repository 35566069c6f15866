// Why a gang failed, told from how its tasks ended and from what they printed last.
//
// failure_of() is pure; evidence_of() and last_lines() read the tasks' logs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/failure_clues.h"
#include "engine/engine.h"
#include "job/job.h"

namespace muster::control {

/// The last lines a task printed, as many as failure_of() looks through.
std::vector<std::string> last_lines(engine::Engine& engine, const engine::Gang& gang,
                                    const job::Task& task);

/// The container that a task ran in, as far as it can have to do with how it ended.
struct Container {
  std::string image;
  bool is_writable = false;  ///< all of it
  int64_t memory_bytes = 0;  ///< that it may use; 0: as much as there is
};

/// What there is to tell a failure from.
struct Evidence {
  job::Task task;                  ///< at fault, with its exit
  std::vector<std::string> lines;  ///< the last it printed

  /// The process that a launcher saw fail first, where the task is one and says so.
  std::optional<RankEnd> rank;
  std::optional<job::Task> where;       ///< the task that the rank ran in
  std::vector<std::string> rank_lines;  ///< the last that the rank printed itself

  /// The host to which the launcher lost its connection, as its words have it; `where` is its task.
  std::optional<std::string> lost_host;

  std::optional<Container> container;  ///< that it happened in, where tasks are containers
};

/// The tasks by the addresses at which they answer, as far as they are known: ssh names hosts by
/// these.
using TasksByAddress = std::map<std::string, std::string>;

/// Looks at the logs of `culprit` and of the rank that it names, and at the rank census.
Evidence evidence_of(engine::Engine& engine, const engine::Gang& gang, const job::Job& job,
                     const job::Task& culprit, const TasksByAddress& addresses = {});

/// Names the first that failed, its exit in words, and what its last lines say about it: of those
/// it keeps the few that matter.
job::Failure failure_of(const Evidence& evidence);

/// The same of a task alone.
job::Failure failure_of(const job::Task& task, std::vector<std::string> lines);

/// All the lines that a retry rule is to look at.
std::vector<std::string> lines_of(const Evidence& evidence);

/// The task at fault as a retry rule sees it: with the exit that the job had, on the node where it
/// went wrong.
job::Task culprit_of(const Evidence& evidence);

}  // namespace muster::control
