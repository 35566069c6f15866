// What a session stands on: the insides of the Communicator that it took over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend.h"
#include "muster/collective/session.h"
#include "shm/arena.h"
#include "world/world.h"

namespace muster::collective {

struct SessionBase {
  World& world;

  /// Used by one thread at a time. Not null.
  Backend* backend = nullptr;

  /// Zeroed memory that all ranks of the world share and nobody else uses, where the world is one
  /// host with shared memory; null otherwise.
  std::byte* shared = nullptr;
  std::uint64_t shared_bytes = 0;

  /// Memory of this rank that the other ranks of its host can read directly. Null when this
  /// rank shares no memory.
  shm::Arena* arena = nullptr;

  /// The calls that the communicator has made already; the session's go on from there.
  std::uint64_t calls = 0;

  /// Owns all of the above; let go when the session has left.
  std::shared_ptr<void> owner = {};
};

/// Session::start() behind the Communicator.
Result<Session> start_session(SessionBase base, SessionOptions options);

}  // namespace muster::collective
