// The third step of joining: the ranks of a host map one memory. The lowest of them makes it and
// hands it to the others over their control connections.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/meet.h"
#include "transport/descriptor.h"
#include "world/shared_memory.h"
#include "world/topology.h"

namespace muster::collective {

/// How much memory the ranks of a host share, from their number and what each sets aside as arena.
using MemoryBytes = std::function<std::uint64_t(int ranks, std::uint64_t arena_bytes)>;

/// `why` is empty where `memory` is this host's, or where there is nobody to share it with.
struct Sharing {
  SharedMemory memory;
  std::string why;  // it could not be shared
};

/// Maps the memory of this rank's host as far as that goes on this rank alone; the others of the
/// host have to be asked then. `control` is by rank.
///
/// Errors: what another rank failed with, kTimeout.
Result<Sharing> share_memory(const Joining& joining, Star& star, const Topology& topology,
                             const std::vector<Descriptor>& control, std::uint64_t bytes);

}  // namespace muster::collective
