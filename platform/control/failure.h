// Determines why a gang failed, from the exits of its tasks and the last lines that they printed.
//
// failure_of() is pure; evidence_of(), printed_end() and last_lines() read the tasks' logs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/first_failure.h"
#include "control/launcher_reports.h"
#include "engine/engine.h"
#include "job/job.h"

namespace muster::control {

/// The last lines that a task printed, as many as failure_of() searches.
std::vector<std::string> last_lines(engine::Engine& engine, const engine::GangId& gang,
                                    const job::Task& task);

/// What these and some earlier lines show about the end of a task.
PrintedEnd printed_end(engine::Engine& engine, const engine::GangId& gang, const job::Job& job,
                       const job::Task& task);

/// The properties of a task's container that may explain its end.
struct Container {
  std::string image;
  bool is_writable = false;  ///< the whole file system
  int64_t memory_bytes = 0;  ///< its limit; 0: no limit
};

/// The facts that a failure is explained by.
struct Evidence {
  job::Task task;                  ///< the task at fault, with its exit
  std::vector<std::string> lines;  ///< the last lines that it printed

  /// The process that failed first, if the task is a launcher that reports it.
  std::optional<RankEnd> rank;
  std::optional<job::Task> where;       ///< the task in which the rank ran
  std::vector<std::string> rank_lines;  ///< the last lines of the rank
  /// If the rank printed nothing: `lines` without those of other ranks, where a launcher tags them.
  std::optional<std::vector<std::string>> untagged;

  /// The host to which the launcher lost its connection, as named in its log; `where` is its task.
  std::optional<std::string> lost_host;

  std::optional<Container> container;  ///< where the failure happened, if tasks are containers

  /// The task that had exited with code 0 while the others still needed it, if `task` failed
  /// because it lost another process; empty: no such task.
  std::string exited_before;
};

/// The known names of tasks by the addresses at which they answer: ssh prints these addresses.
using TasksByAddress = std::map<std::string, std::string>;

/// Reads the logs of `culprit` and of the rank that it names, and the rank census.
Evidence evidence_of(engine::Engine& engine, const engine::GangId& gang, const job::Job& job,
                     const job::Task& culprit, const TasksByAddress& addresses = {});

/// Names the process that failed first, its exit, and the clues in its last lines, and keeps the
/// few lines that matter.
job::Failure failure_of(const Evidence& evidence);

/// The same for a single task.
job::Failure failure_of(const job::Task& task, std::vector<std::string> lines);

/// The lines that retry rules are matched against.
std::vector<std::string> lines_of(const Evidence& evidence);

/// The task that retry rules are applied to: with the exit of the job, on the node of the failure.
job::Task culprit_of(const Evidence& evidence);

}  // namespace muster::control
