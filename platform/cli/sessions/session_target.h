// The task that somebody wants to sit before, once it runs.
//
// Blocking; I/O.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "job/job.h"

namespace muster::cli::sessions {

struct SessionTarget {
  job::Job job;
  job::Task task;

  bool is_leader() const { return task.name == job::deciding_task(job).name; }
};

/// Waits until the task runs; says on standard error what it waits for, each time that changes.
/// `task` empty: the one that decides. Nothing: Ctrl-C.
///
/// Errors: kNotFound: no such job or task; kConflict: it has ended, with how; kTimeout: it does not
/// run yet.
base::Result<std::optional<SessionTarget>> await_running(Connection& connection,
                                                         const std::string& name,
                                                         const std::string& task,
                                                         std::chrono::milliseconds patience);

/// A job that has ended, as whoever came too late is told.
base::Error has_ended(const job::Job& job);

}  // namespace muster::cli::sessions
