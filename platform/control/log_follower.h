// The merged log of one job: what its tasks printed in each of its attempts, in the order
// of time, up to its end.
//
// Where a reader was cut off, another goes on from a position() of the first: it delivers the bytes
// that come after it, each once, though it may cut them into runs elsewhere.
//
// On the EventLoop's thread. It reads in small steps and only when it is asked, so neither a log of
// gigabytes nor a slow reader costs memory or keeps the loop from its work.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "control/controller.h"
#include "control/log_position.h"
#include "control/log_runs.h"
#include "control/log_tail.h"
#include "engine/engine.h"
#include "job/log_record.h"

namespace muster::control {

class LogFollower {
 public:
  /// What comes next, possibly nothing; valid during the call. `end`: there will be no more.
  using Deliver = std::function<void(const job::LogBatch& batch, bool end)>;

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

  void advance();
  bool open_sources(const job::Job& job);
  bool open_source(const engine::Gang& gang, const job::Task& task);
  void try_again_later();
  void go_to(Source& source, const LogPosition::Source& place) const;
  void look_at_all();
  bool read_some();
  size_t read_up_to(Source& source, base::Time next, size_t most);
  void read_frame(Source& source);
  void heed_cut(Source& source);
  bool is_shown(const engine::LogFrame& frame) const;
  std::pair<Source*, base::Time> earliest();
  void take(Source& source, const RunSplitter::Run& run);
  void flush(bool last);
  void close_settled();
  void deliver_tail();
  void wait();
  void deliver(bool end);
  LogPosition::Source place_in_tail(const Source& source) const;
  static LogPosition::Source place_of(const Source& source);

  base::EventLoop& loop_;
  Controller& controller_;
  engine::Engine& engine_;
  std::string name_;
  std::string id_;  ///< once it has been seen
  job::LogQuery query_;
  std::shared_ptr<const job::LogPattern> only_;  ///< of query_.grep
  LogPosition from_;
  int opened_attempts_ = 0;   ///< whose sources are all open
  int settled_attempts_ = 0;  ///< of which all was delivered
  std::vector<std::unique_ptr<Source>> sources_;
  LogTail tail_;  ///< while the last lines are looked for, and until they are delivered
  bool in_tail_ = false;
  bool all_read_ = false;  ///< only what stands in tail_ is yet to come
  job::LogBatch ready_;
  Deliver deliver_;
  bool posted_ = false;
  std::shared_ptr<void> job_watch_;
  base::EventLoop::Interest partial_timer_;
  base::EventLoop::Interest retry_timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
