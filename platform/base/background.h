// Work that blocks, off the loop's thread: one thread of its own, one piece after the other.
//
// run() on the loop's thread; the loop must outlive it.
#pragma once

#include <functional>
#include <memory>

#include "base/event_loop.h"

namespace muster::base {

class Background {
 public:
  explicit Background(EventLoop& loop);
  /// Waits for the piece that is under way; the others are dropped, and no `done` is called any
  /// more.
  ~Background();

  /// Calls `work` on the other thread, then `done` on the loop's.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::base
