// How a gang ends: its tasks are stopped in order, a failure is explained, and a retry is decided.
//
// On the EventLoop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/attempt_services.h"
#include "control/gang_start.h"
#include "control/resizing.h"

namespace muster::control {

/// The job has failed because of `failure`, unless it has failed already: the first cause explains
/// the others.
void set_failure(JobTable& jobs, job::Job& job, job::Failure failure);

/// Whether tasks may still be at the last lines of a program that their leader has completed.
bool others_come_to_their_end(const job::Job& job);

class GangEnd {
 public:
  /// Another attempt of the job.
  struct NextAttempt {
    job::Fact why;
    std::chrono::milliseconds delay{0};
  };

  /// `start`, `resizing`: of the same attempt. `begun` is called when the gang begins to end, which
  /// may happen several times. `is_suspended`: whether the cluster has suspended the allocation.
  GangEnd(AttemptContext context, GangStart& start, Resizing& resizing, std::function<void()> begun,
          std::function<bool()> is_suspended)
      : context_(std::move(context)),
        start_(start),
        resizing_(resizing),
        begun_(std::move(begun)),
        is_suspended_(std::move(is_suspended)) {}

  /// Whether all tasks are being stopped, or are lost.
  bool is_ending() const { return ending_; }
  /// Whether the leader has succeeded, and the others may end by themselves.
  bool leader_has_succeeded() const { return leader_has_succeeded_; }

  /// Stops all tasks.
  void stop(engine::StopMode mode);
  /// Stops a launcher first: it stops its ranks in good order, and the workers follow its end.
  /// Without a running launcher the workers are stopped at once. Tasks that run the program
  /// themselves, and the tasks of a suspended gang, are all stopped at once.
  void stop_gently();
  /// The gang cannot continue without this task, which has ended; all others are stopped.
  ///
  /// A launcher has a moment in which it reports its lost worker. A task that runs the program itself
  /// may have failed because another one was killed, whose end a busy machine notices later: the
  /// failure is explained when all tasks have ended (explain_loss()), at the latest after the grace
  /// period of the job.
  /// `third_loss_within`: more than zero if too many workers were lost in a row.
  void end_by_loss(const job::Task& lost, std::chrono::milliseconds third_loss_within);
  /// Explains the failure of a gang that ends because of a loss, if that was not done yet.
  void explain_loss();
  /// The end of the leader ends the job, unless every worker must succeed as well. Workers that a
  /// launcher reaches are stopped. Workers that run the program beside their leader may end by
  /// themselves, and parameter servers after them.
  void leader_ended();
  /// All tasks are lost with the allocation.
  void all_lost();
  /// Stops the gang when the time limit of the job is reached.
  void limit_run_time();

  void fail(job::Failure failure);
  /// Explains the failure by `culprit`. `third_loss_within`: more than zero if too many workers
  /// were lost in a row.
  void fail_by(const job::Task& culprit, std::chrono::milliseconds third_loss_within = {});
  /// The task that failed the job, for retry rules; `lines`: the last that it printed.
  void blame(const job::Task& culprit, std::vector<std::string> lines);
  /// Explains the failure of a gang that ended by itself.
  void explain_failure();

  /// Another attempt is to follow, with any exits of the tasks.
  void abandon(job::Fact why, std::chrono::milliseconds delay);
  const std::optional<NextAttempt>& next_attempt() const { return next_attempt_; }
  /// The attempt that follows the failure of the job, if the job has retries or other ports help.
  /// `rules_only`: only a retry rule of the job starts it again.
  std::optional<NextAttempt> retry(bool can_change_ports, bool rules_only);

 private:
  void begin();
  job::Task find_culprit(const job::Task* loss);

  AttemptContext context_;
  GangStart& start_;
  Resizing& resizing_;
  std::function<void()> begun_;
  std::function<bool()> is_suspended_;
  bool ending_ = false;
  bool has_killed_ = false;  ///< tasks were stopped without a grace period
  bool leader_has_succeeded_ = false;
  std::optional<NextAttempt> next_attempt_;
  std::optional<job::Task> culprit_;  ///< the task that failed the job
  std::vector<std::string> culprit_lines_;
  std::string loss_;  ///< the task whose loss ends the gang, until the failure is explained
  base::EventLoop::Interest last_words_timer_;
  base::EventLoop::Interest loss_timer_;
  base::EventLoop::Interest limit_timer_;
};

}  // namespace muster::control
