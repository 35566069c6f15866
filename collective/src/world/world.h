// The ranks of a job once they have met: who they are, on which hosts, and what joins them. The
// backends are built on it.
//
// A World is made by join() (world/join.h) and belongs to one Communicator.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "control/monitor.h"
#include "muster/collective/bootstrap.h"
#include "transport/descriptor.h"
#include "world/shared_memory.h"
#include "world/topology.h"

namespace muster::collective {

class GroupDesk;

/// The data connections to one rank: at least one, the same number on both sides, in the same
/// order. Bytes flow both ways. Non-blocking, without Nagle's delay.
struct Streams {
  std::vector<Descriptor> sockets;
};

struct World {
  int rank = 0;
  int size = 1;
  Options options;                 // complete: host, timeout and all
  std::vector<std::string> hosts;  // by rank: the name of its host, for messages
  Topology topology;

  /// For groups of these ranks (world/group.h). Null in a world of one. Outlives the monitor.
  std::shared_ptr<GroupDesk> groups;

  /// Mapped by all ranks of this host, where there are two or more of them and the system allowed
  /// it to each: topology.memory_on says so. Zeroed at first.
  SharedMemory memory;

  /// By rank; empty for this rank itself. Between all ranks where the world spans hosts, or where a
  /// host could not share memory; otherwise there are none at all.
  std::vector<Streams> streams;

  /// Watches over the ranks, tells and keeps the failure. Null in a world of one. The first to go:
  /// the others hear why before they see connections end.
  std::unique_ptr<Monitor> monitor;

  /// "rank 1 on host n1"
  std::string name_of(int other) const {
    return "rank " + std::to_string(other) + " on host " + hosts[static_cast<std::size_t>(other)];
  }
};

}  // namespace muster::collective
