// What a Communicator is made of. The members go in reverse order: who uses a thing goes before it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backend.h"
#include "muster/collective/communicator.h"
#include "shm/arena.h"
#include "shm/layout.h"
#include "world/world.h"

namespace muster::collective {

class Communicator::Impl {
 public:
  explicit Impl(std::unique_ptr<World> joined) : world(std::move(joined)) {}

  /// Numbers the call and shows that this rank has entered it.
  Call begin(Call call) {
    call.sequence = ++calls;
    if (world->monitor) world->monitor->entered(calls);
    return call;
  }

  Status failure() const {
    if (world->monitor && world->monitor->failed()) return world->monitor->failure();
    return {};
  }

  std::unique_ptr<World> world;
  shm::Layout layout = {};
  std::optional<shm::Arena> arena = {};  // where the ranks of this host share memory
  std::unique_ptr<Backend> backend = {};
  std::uint64_t calls = 0;
};

}  // namespace muster::collective
