// Sequences of asynchronous calls, mostly requests to hosts.
//
// On the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"

namespace muster::engine {

using Then = std::function<void(base::Result<void>)>;
/// Starts an action and calls `then` once, at once or later.
using Step = std::function<void(Then then)>;

/// Runs the steps one after the other; then calls `done`. The first error ends the sequence and is
/// passed to `done`.
void one_by_one(std::vector<Step> steps, Then done);

/// Starts all steps at once; calls `done` when all have finished, with the error of the first that
/// failed.
void all_at_once(const std::vector<Step>& steps, Then done);

/// Posts actions to the event loop. Actions that have not run when this object is destroyed are
/// dropped.
class Later {
 public:
  explicit Later(base::EventLoop& loop) : loop_(loop) {}

  void operator()(std::function<void()> action) const;

 private:
  base::EventLoop& loop_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// Limits how many callers do something at a time; the others wait in the order of their arrival.
class Turns {
 public:
  Turns(base::EventLoop& loop, size_t most);

  /// Holding it, or a copy of it, is having a turn; the turn ends when the last copy is dropped.
  using Turn = std::shared_ptr<void>;

  /// Calls `go` when a turn is free: at once or later, never after this object is destroyed.
  void wait(std::function<void(Turn)> go);

 private:
  struct State {
    explicit State(base::EventLoop& its_loop) : loop(its_loop) {}
    base::EventLoop& loop;
    size_t free = 0;
    std::deque<std::function<void(Turn)>> waiting;
  };
  static void next(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace muster::engine
