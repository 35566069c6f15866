#include "cli/sessions/session_target.h"

#include <algorithm>
#include <iostream>

#include "base/units.h"
#include "cli/common/interrupts.h"
#include "cli/common/terminal.h"
#include "cli/connection/job_watch.h"
#include "words/sentence.h"

namespace muster::cli::sessions {

namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

Result<job::Task> task_of(const job::Job& job, const std::string& name) {
  if (name.empty()) return job::deciding_task(job);
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(),
                                  [&](const job::Task& task) { return task.name == name; });
  if (found != job.tasks.end()) return *found;
  return Error{.code = ErrorCode::kNotFound,
               .what = "job '" + job.spec.name + "' has no task '" + name + "'",
               .advice = "muster get " + job.spec.name + " shows its tasks"};
}

Error task_has_ended(const job::Job& job, const job::Task& task) {
  return {.code = ErrorCode::kConflict,
          .what = "'" + task.name + "' of job '" + job.spec.name + "' has ended" +
                  (task.exit ? ": it " + job::explain(*task.exit) : ""),
          .advice = "muster get " + job.spec.name + " shows what its tasks do"};
}

/// What somebody who waits for the job looks at.
std::string state_of(const job::Job& job) {
  const std::string phase(job::to_string(job.phase));
  return "job '" + job.spec.name + "' is " + phase + words::after_colon(job.reason);
}

class Wait {
 public:
  Wait(Connection& connection, std::string task)
      : connection_(connection), task_(std::move(task)) {}

  Result<std::optional<SessionTarget>> run(const std::string& name,
                                           std::chrono::milliseconds patience) {
    MUSTER_TRY(job_, connection_.call([&](api::Client& client) { return client.get(name); }));
    MUSTER_TRY(const bool runs, look());
    if (runs) return target();
    if (patience.count() == 0) return not_yet();
    return wait(patience);
  }

 private:
  Result<std::optional<SessionTarget>> wait(std::chrono::milliseconds patience) {
    Interrupts interrupts;
    tell();
    std::optional<Result<bool>> seen;
    const JobWatch watch{.project = job_.spec.project,
                         .names = {job_.spec.name},
                         .on_job =
                             [&](const std::string&, const job::Job* job) {
                               if (job == nullptr) {
                                 seen = Result<bool>(is_gone());
                                 return false;
                               }
                               job_ = *job;
                               seen = look();
                               tell();
                               return *seen && !**seen;
                             },
                         .bound = patience,
                         .interrupts = &interrupts};
    MUSTER_TRY(const WatchEnd end, watch_jobs(connection_, watch));
    if (end == WatchEnd::kInterrupted) return std::optional<SessionTarget>();
    if (seen && !*seen) return seen->error();
    if (!seen || !**seen) return not_yet();
    return target();
  }

  /// Whether the task runs.
  Result<bool> look() {
    if (job::is_final(job_.phase)) return has_ended(job_);
    MUSTER_TRY(const job::Task task, task_of(job_, task_));
    // Of one that waits for another attempt, the tasks have ended and will begin anew.
    if (task.phase == job::TaskPhase::kEnded && job_.phase == job::Phase::kRunning) {
      return task_has_ended(job_, task);
    }
    return task.phase == job::TaskPhase::kRunning;
  }

  std::optional<SessionTarget> target() const {
    return SessionTarget{.job = job_, .task = *task_of(job_, task_)};
  }

  void tell() {
    std::string state = safe_lines(state_of(job_));
    if (state == told_ || job::is_final(job_.phase) || job_.phase == job::Phase::kRunning) return;
    std::cerr << "muster: " << state << std::endl;
    told_ = std::move(state);
  }

  Error not_yet() const {
    return {.code = ErrorCode::kTimeout,
            .what = state_of(job_),
            .advice = "it goes on without you; muster explain " + job_.spec.name +
                      " says more, --wait TIME waits longer"};
  }

  Error is_gone() const {
    return {.code = ErrorCode::kNotFound, .what = "job '" + job_.spec.name + "' was removed"};
  }

  Connection& connection_;
  std::string task_;
  job::Job job_;
  std::string told_;
};

}  // namespace

Result<std::optional<SessionTarget>> await_running(Connection& connection, const std::string& name,
                                                   const std::string& task,
                                                   std::chrono::milliseconds patience) {
  return Wait(connection, task).run(name, patience);
}

Error has_ended(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job '" + job.spec.name + "' has ended: it is " +
                  std::string(job::to_string(job.phase)) + words::after_colon(job.reason),
          .advice = "muster logs " + job.spec.name + " shows what it printed"};
}

}  // namespace muster::cli::sessions
