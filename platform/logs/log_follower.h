// The merged log of one job: what its tasks printed in each of its attempts, ordered by time, up to
// its end. If the tasks print faster than a follow reads, a line may come up to ten seconds before
// older lines of other tasks, so that it does not wait for all of them.
//
// If a reader is cut off, another reader continues from a position() of the first: it delivers each
// byte after that position once, though it may divide the bytes into other runs.
//
// On the EventLoop's thread. It reads in small steps and only on request, so neither a log of
// gigabytes nor a slow reader costs memory or blocks the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "job/job.h"
#include "job/log_record.h"
#include "logs/log_lines.h"
#include "logs/log_position.h"

namespace muster::logs {

/// The job whose log is followed, as its owner shows it.
struct FollowedJob {
  /// The job as it is now; nullptr once it is deleted.
  std::function<const job::Job*()> get;
  /// Calls back after each change of the job, as long as the handle is kept.
  std::function<std::shared_ptr<void>(std::function<void()> changed)> watch;
};

class LogFollower {
 public:
  /// Receives the next records, possibly none; `batch` is valid during the call. `end`: the log is
  /// complete.
  using Deliver = std::function<void(const job::LogBatch& batch, bool end)>;

  /// A job that is deleted meanwhile ends the log. What `job` refers to must outlive the follower,
  /// as must the loop and the engine.
  LogFollower(base::EventLoop& loop, engine::Engine& engine, FollowedJob job, job::LogQuery query);
  ~LogFollower();

  /// Continues from there instead of the beginning; the query's tail is ignored. REQUIRES: nothing
  /// was pulled yet.
  void resume(LogPosition from);

  /// Requests the next records. Delivers once, now or later. REQUIRES: no other pull is pending.
  void pull(Deliver deliver);

  /// The position after everything that was delivered. REQUIRES: called during a delivery.
  LogPosition position() const;
  /// Whether the query's last lines are still being found or delivered.
  bool in_tail() const { return in_tail_ || !tail_.empty(); }

 private:
  struct Source;

  void advance();
  bool open_sources(const job::Job& job);
  bool open_source(const engine::GangId& gang, const job::Task& task, RunSplitter::Ranks ranks);
  void try_again_later();
  bool go_to(Source& source, const LogPosition::Source& place) const;
  void expect_more();
  bool read_some();
  size_t read_turns(size_t most);
  size_t read_up_to(Source& source, base::Time next, size_t most);
  void read_frame(Source& source);
  void take_cut(Source& source);
  void take_own_notice(Source& source);
  bool is_shown(const engine::LogFrame& frame) const;
  std::pair<Source*, base::Time> earliest();
  void take(Source& source, const RunSplitter::Run& run);
  void flush_all();
  bool lacks_resources() const;
  bool has_partial() const;
  void await_rest_of_lines();
  void flush_waiting();
  void close_settled();
  void deliver_tail();
  void wait();
  void deliver(bool end);
  LogPosition::Source place_in_tail(const Source& source) const;
  static LogPosition::Source place_of(const Source& source);

  base::EventLoop& loop_;
  engine::Engine& engine_;
  FollowedJob job_;
  job::LogQuery query_;
  std::shared_ptr<const job::LogPattern> only_;  ///< from query_.grep
  LogPosition from_;
  int opened_attempts_ = 0;   ///< attempts up to this one have all sources open
  int settled_attempts_ = 0;  ///< attempts up to this one are delivered completely
  std::vector<std::unique_ptr<Source>> sources_;
  LogTail tail_;  ///< the last lines, until they are delivered
  bool in_tail_ = false;
  bool lags_ = false;      ///< the last step left something to read
  bool all_read_ = false;  ///< only the lines in tail_ are left to deliver
  job::LogBatch ready_;
  Deliver deliver_;
  bool posted_ = false;
  std::shared_ptr<void> job_watch_;
  base::EventLoop::Interest partial_timer_;
  base::EventLoop::Interest retry_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::logs
