// From options to a world: the ranks meet (bootstrap/meet.h), connect each to each (mesh.h), share
// the memory of each host (share.h), and open connections for data where they are needed. No port
// stays open afterwards.
//
// What has to be the same on all ranks is: rank 0's transport, algorithm and number of streams
// count for all; of the arenas of one host the smallest.
#pragma once

#include <memory>

#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "world/share.h"
#include "world/world.h"

namespace muster::collective {

/// Joins the world that `options` describe; takes over options.listener. A world of one opens no
/// socket and has no monitor. `cancel`, a descriptor that turns readable, ends the wait early; -1:
/// none.
///
/// The options of the world are complete: host and host_id are filled in, the arena is the host's,
/// and `timeout` stays what it was, empty where it was not set.
///
/// Errors: those of Communicator::connect(). All ranks that have met fail together.
Result<std::unique_ptr<World>> join(const Options& options, const MemoryBytes& memory_bytes,
                                    int cancel = -1);

}  // namespace muster::collective
