// The reports of an engine to its users: the state of allocations, and events of tasks.
//
// Every report is posted to the loop, so no listener runs within a call of the engine, and nothing
// is reported after the engine is destroyed. On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/lent/gang_table.h"

namespace muster::engine::lent {

class Reports {
 public:
  explicit Reports(base::EventLoop& loop) : loop_(loop) {}

  /// Returns whether this is the first listener.
  bool listen(Engine::Listener listener);
  void listen_to_allocations(Engine::AllocationListener listener) {
    allocation_listener_ = std::move(listener);
  }

  /// Runs `action` in the next turn of the loop, unless the engine is destroyed before.
  void post(std::function<void()> action) const;

  void announce(const GangId& gang, AllocationNews news);
  /// Reports why the gang waits, if that has changed.
  void waits(const GangPointer& gang, AllocationPending waits);
  void task(const GangId& gang, const std::string& task, TaskNews news);

 private:
  base::EventLoop& loop_;
  Engine::Listener listener_;
  Engine::AllocationListener allocation_listener_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::lent
