// Joins a world: the ranks meet (bootstrap/meet.h), connect to each other, share the memory of each
// host (share.h), and open data connections where they are needed. No port stays open afterwards. In
// a large world (control/graph.h) a rank connects to few others, and keeps its port open for
// connections on demand (world_switchboard.h).
//
// Some settings must be equal on all ranks: the transport, algorithm and number of streams are
// those of rank 0, and the arena of a host is the smallest that one of its ranks requests.
#pragma once

#include <memory>

#include "bootstrap/meet.h"
#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "world/share.h"
#include "world/world.h"

namespace muster::collective {

/// Joins the world that `options` describe and takes over options.listener. A world of one rank
/// opens no socket and has no monitor. `cancel` is a descriptor whose readability ends the wait;
/// -1: none. `find` replaces the rendezvous and the key of the options on all ranks but rank 0.
///
/// The options of the world are complete: host and host_id are set, the arena is the host's.
/// `timeout` keeps its value, and is empty if it was not set.
///
/// Errors: those of Communicator::connect(). All ranks that have met fail together.
Result<std::unique_ptr<World>> join(const Options& options, const MemoryBytes& memory_bytes,
                                    int cancel = -1, const Finder& find = {});

}  // namespace muster::collective
