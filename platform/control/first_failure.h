// Which task of a gang failed first, and which tasks failed only as a consequence.
//
// The order in which the tasks end is not enough. A launcher such as torchrun notices the end of its
// rank up to seconds later, and the rank that lost its connection to the failed one ends at almost
// the same time. So the choice also considers what each task printed: the error that ended its
// program, when it was printed, whether it only reports the loss of another process, and the report
// of its launcher.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/failure_clues.h"
#include "control/launcher_reports.h"
#include "job/job.h"

namespace muster::control {

/// What the last lines of a task show about its end.
struct PrintedEnd {
  std::optional<PrintedError> error;
  std::optional<RankEnd> report;  ///< of its launcher, about the rank that failed
};

/// By the names of the tasks. A task that is missing printed nothing that matters.
using PrintedEnds = std::map<std::string, PrintedEnd>;

/// Whether the task failed only because it lost another process, by what it printed.
bool reports_loss(const PrintedEnd& end);

/// How a gang ended, beside the ends of its tasks.
struct GangLoss {
  const job::Task* task = nullptr;  ///< its loss made the gang end; nullptr: its leader ended
  bool has_killed = false;          ///< Muster has killed tasks without a grace period
};

/// The tasks whose last lines task_at_fault() uses, at most `most`: those that ended first. Empty:
/// the ends alone decide.
std::vector<const job::Task*> tasks_to_read(const job::Job& job, size_t most);

/// The task that failed first, in a gang that has ended. In this order:
///
///   1. a task that was killed, and not by Muster
///   2. a task that failed by itself
///   3. a task that Muster stopped, if it printed an error of its own shortly before: its program
///      had failed already. In the result, it failed by itself
///   4. a task that failed by itself because it lost another process
///
/// Among equals, the first one: by the time of its own error if it printed one, else of its end.
job::Task task_at_fault(const job::Job& job, const GangLoss& loss, const PrintedEnds& printed);

/// In a PyTorch job, whose tasks need each other until the end: the first task that exited with
/// code 0, if it did so before `failed` ended. nullptr: no such task, or a job of another kind.
const job::Task* exited_before(const job::Job& job, const job::Task& failed);

}  // namespace muster::control
