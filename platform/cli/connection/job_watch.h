// Waits until jobs are as somebody wants them, told of every change by the server: no asking again
// and again.
//
// Blocking; I/O. Not thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "cli/common/interrupts.h"
#include "cli/connection/connection.h"
#include "job/job.h"

namespace muster::cli {

using base::Result;

struct JobWatch {
  std::string project;
  std::set<std::string> names;  ///< of the jobs
  /// Told of each of them as it is, and whenever it changes; nullptr: it is not there, or no more.
  /// False: enough.
  std::function<bool(const std::string& name, const job::Job* job)> on_job;
  std::optional<std::chrono::milliseconds> bound = {};  ///< at most so long
  Interrupts* interrupts = nullptr;                     ///< Ctrl-C ends it; nullptr: it ends us
};

enum class WatchEnd { kEnough, kBoundReached, kInterrupted };

/// Goes on where the server went away and came back. Errors: those of the server.
Result<WatchEnd> watch_jobs(Connection& connection, const JobWatch& watch);

}  // namespace muster::cli
