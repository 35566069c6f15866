// The merged log of one job: what its tasks printed in each of its attempts, in the order
// of time, up to its end.
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

  /// Asks for what comes next. Delivers once, now or later. REQUIRES: no pull is open.
  void pull(Deliver deliver);

 private:
  struct Source;

  void advance();
  void open_sources(const job::Job& job);
  void open_source(const engine::Gang& gang, const job::Task& task);
  bool read_some();
  Source* earliest();
  void take(job::LogRecord record);
  void flush(bool last);
  void wait();
  void deliver(bool end);

  base::EventLoop& loop_;
  Controller& controller_;
  engine::Engine& engine_;
  std::string name_;
  std::string id_;  ///< once it has been seen
  job::LogQuery query_;
  int settled_attempts_ = 0;  ///< whose sources are all open
  std::vector<std::unique_ptr<Source>> sources_;
  std::deque<job::LogRecord> tail_;  ///< while the last lines are looked for
  bool in_tail_ = false;
  std::vector<job::LogRecord> ready_;
  Deliver deliver_;
  bool posted_ = false;
  std::shared_ptr<void> job_watch_;
  base::EventLoop::Interest partial_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
