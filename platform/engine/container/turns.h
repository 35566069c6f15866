// Lets so many do something at a time; the others wait for their turn, in the order they came.
//
// On the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "base/event_loop.h"

namespace muster::engine {

class Turns {
 public:
  Turns(base::EventLoop& loop, size_t most);

  /// Whoever holds it, or a copy of it, has a turn; the last to drop it ends it.
  using Turn = std::shared_ptr<void>;

  /// Calls `go` when there is a turn: at once or later, never when this is gone.
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
