// The merged log of one job: what its tasks printed in each of its attempts, in the order
// of time, up to its end.
//
// Where a reader was cut off, another goes on from a position() of the first: it delivers the bytes
// that come after it, each once, though it may cut them into records elsewhere.
//
// On the EventLoop's thread. It reads in small steps and only when it is asked, so neither a log of
// gigabytes nor a slow reader costs memory or keeps the loop from its work.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "control/controller.h"
#include "control/log_lines.h"
#include "control/log_position.h"
#include "engine/engine.h"
#include "job/log_record.h"

namespace muster::control {

class LogFollower {
 public:
  /// Records in order, possibly none; `end`: there will be no more.
  using Deliver = std::function<void(std::vector<job::LogRecord> records, bool end)>;

  /// `name` is a job that exists now; a job that is deleted meanwhile ends the log.
  LogFollower(base::EventLoop& loop, Controller& controller, engine::Engine& engine,
              std::string name, job::LogQuery query);
  ~LogFollower();

  /// Goes on from there instead of at the beginning; the query's tail is then no matter. REQUIRES:
  /// nothing was pulled yet.
  void resume(LogPosition from);

  /// Asks for what comes next. Delivers once, now or later. REQUIRES: no pull is open.
  void pull(Deliver deliver);

  /// Behind all that was delivered. REQUIRES: asked while something is being delivered.
  LogPosition position() const;
  /// The last lines that existed when it began are not all delivered yet.
  bool in_tail() const { return in_tail_ || !tail_.empty(); }

 private:
  struct Source;
  struct TailRecord {
    job::LogRecord record;
    Source* source = nullptr;
  };

  void advance();
  bool open_sources(const job::Job& job);
  bool open_source(const engine::Gang& gang, const job::Task& task);
  void try_again_later();
  void go_to(Source& source, const LogPosition::Source& place) const;
  bool read_some();
  bool is_shown(const engine::LogFrame& frame) const;
  Source* earliest();
  void take(Source& source, job::LogRecord record);
  void flush(bool last);
  void flush_stale();
  void close_settled();
  void drop_first_of_tail();
  void deliver_tail();
  void wait();
  void deliver(bool end);

  base::EventLoop& loop_;
  Controller& controller_;
  engine::Engine& engine_;
  std::string name_;
  std::string id_;  ///< once it has been seen
  job::LogQuery query_;
  LogPosition from_;
  int opened_attempts_ = 0;   ///< whose sources are all open
  int settled_attempts_ = 0;  ///< of which all was delivered
  std::vector<std::unique_ptr<Source>> sources_;
  std::deque<TailRecord> tail_;  ///< while the last lines are looked for
  size_t tail_bytes_ = 0;
  bool in_tail_ = false;
  bool all_read_ = false;  ///< only what stands in tail_ is yet to come
  std::vector<job::LogRecord> ready_;
  Deliver deliver_;
  bool posted_ = false;
  std::shared_ptr<void> job_watch_;
  base::EventLoop::Interest partial_timer_;
  base::EventLoop::Interest retry_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
