// The third step of joining: the ranks of a host map one memory. The lowest rank creates it and
// sends it to the other ranks over their control connections.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/meet.h"
#include "transport/socket.h"
#include "world/shared_memory.h"
#include "world/world.h"

namespace muster::collective {

/// The size of the shared memory of a host, from its number of ranks and the arena of each rank.
using MemoryBytes = std::function<std::uint64_t(int ranks, std::uint64_t arena_bytes)>;

/// The outcome. `why` is empty if `memory` is valid, or if this rank is alone on its host.
struct Sharing {
  SharedMemory memory;
  std::string why;  // the reason why the memory could not be shared
};

/// Maps the memory of this rank's host. The outcome applies to this rank alone: the caller compares
/// it with the outcomes of the other ranks of the host. `control` is by rank.
///
/// Errors: the failure of another rank, kTimeout.
Result<Sharing> share_memory(const JoinContext& joining, Star& star, const Topology& topology,
                             const std::vector<Descriptor>& control, std::uint64_t bytes);

}  // namespace muster::collective
