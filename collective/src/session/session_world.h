// Sessions for tests: N ranks as N threads of one process. Data goes through shared memory;
// messages of the session go through shared memory as well, or over the monitors as between hosts.
#pragma once

#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "communicator/impl.h"
#include "session/operation.h"
#include "shm/layout.h"
#include "shm/shm_backend.h"

namespace muster::collective::session {

enum class Over { kSharedMemory, kMessages };

inline std::unique_ptr<Backend> backend_of(World& world, const shm::Layout& layout) {
  if (world.size == 1) return std::make_unique<SoloBackend>();
  shm::Host host{.self = world.rank,
                 .names = world.hosts,
                 .memory = world.memory.base(),
                 .layout = layout,
                 .monitor = world.monitor.get()};
  for (int rank = 0; rank < world.size; ++rank) host.ranks.push_back(rank);
  Result<std::unique_ptr<shm::ShmBackend>> backend = shm::ShmBackend::create(std::move(host));
  if (!backend) return nullptr;
  return *std::move(backend);
}

/// The session of a world; it owns its backend.
inline std::unique_ptr<Session> session_of(World& world, Over over, SessionOptions options = {}) {
  struct Owner {
    shm::Layout layout = {};
    std::optional<shm::Arena> arena = {};
    std::unique_ptr<Backend> backend = {};
  };
  auto owner = std::make_shared<Owner>();
  if (world.memory) {
    owner->layout = shm::layout_of(world.size, world.options.arena_bytes.value_or(0));
  }
  owner->backend = backend_of(world, owner->layout);
  if (!owner->backend) return nullptr;
  SessionBase base{.world = world, .backend = owner->backend.get()};
  if (over == Over::kSharedMemory && world.memory) {
    base.shared = world.memory.base() + owner->layout.session;
    base.shared_bytes = owner->layout.session_bytes;
    base.mail = world.memory.base() + owner->layout.mail;
    base.mail_bytes = owner->layout.mail_bytes;
    base.reserve = reserve_in(world);
  }
  if (world.memory) {
    const std::uint64_t bytes = owner->layout.arena_bytes_per_rank;
    const std::uint64_t offset = static_cast<std::uint64_t>(world.rank) * bytes;
    base.arena = &owner->arena.emplace(world.memory, owner->layout.arenas + offset, bytes);
  }
  base.owner = owner;
  Result<Session> session = start_session(std::move(base), std::move(options));
  if (!session) return nullptr;
  return std::make_unique<Session>(*std::move(session));
}

inline std::uint64_t session_memory(int ranks, std::uint64_t arena_bytes) {
  return shm::layout_of(ranks, arena_bytes).total;
}

/// Runs `body` on each rank of a new world.
inline void with_sessions(int size, Over over, const std::function<void(Session&)>& body,
                          const SessionOptions& options = {}) {
  testing::spawn_worlds(
      size, testing::Placement::one_host(),
      [&](World& world) {
        const std::unique_ptr<Session> session = session_of(world, over, options);
        ASSERT_NE(session, nullptr);
        body(*session);
      },
      testing::kPatience, session_memory);
}

}  // namespace muster::collective::session
