// Worlds for tests: N ranks as N threads of one process, joined over real sockets on 127.0.0.1.
//
//   spawn_worlds(4, Placement::one_host(), [](World& world) {
//     EXPECT_TRUE(world.topology.is_one_shared_host());
//   });
#pragma once

#include <muster/collective/testing/options.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "muster/collective/bootstrap.h"
#include "world/share.h"
#include "world/world.h"

namespace muster::collective::testing {

/// More shared memory than any test needs; shm/layout.h has the size that the backends need.
std::uint64_t ample_memory(int ranks, std::uint64_t arena_bytes);

/// Joins all ranks of `options` and runs `body` on each. A rank that cannot join is a failure of
/// the calling test.
void join_all(const std::vector<Options>& options, const std::function<void(World&)>& body,
              const MemoryBytes& memory_bytes = ample_memory);

/// The same for a new world.
void spawn_worlds(int size, Placement placement, const std::function<void(World&)>& body,
                  std::chrono::milliseconds timeout = kPatience,
                  const MemoryBytes& memory_bytes = ample_memory);

}  // namespace muster::collective::testing
