// A world: the ranks of a job after they have met, the hosts they run on, and the connections
// between them. The backends are built on it.
//
// Ownership: join() (world/join.h) makes a World, which belongs to one Communicator.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "control/monitor.h"
#include "muster/collective/bootstrap.h"
#include "transport/socket.h"
#include "world/shared_memory.h"
#include "world/world_switchboard.h"

namespace muster::collective {

/// The ranks of each host. Hosts are numbered in the order of their lowest rank.
struct Topology {
  std::vector<int> host_of;                // by rank: the number of its host
  std::vector<std::vector<int>> ranks_on;  // by host: its ranks, ascending
  std::vector<bool> memory_on;             // by host: whether its ranks share memory

  int hosts() const { return static_cast<int>(ranks_on.size()); }

  const std::vector<int>& neighbours_of(int rank) const {
    return ranks_on[static_cast<std::size_t>(host_of[static_cast<std::size_t>(rank)])];
  }

  /// The index of a rank among the ranks of its host.
  int local_rank_of(int rank) const;

  /// Whether all ranks share memory on one host, so that no connection is needed.
  bool is_one_shared_host() const { return hosts() == 1 && memory_on[0]; }

  /// Whether every host has the same number of ranks, at least two, that share memory.
  bool is_hierarchical() const;
};

/// The topology for the host id of each rank: ranks with equal ids are on one host. `memory_on` is
/// all false.
Topology topology_of(const std::vector<std::string>& host_ids);

class GroupInvitations;

struct World {
  int rank = 0;
  int size = 1;
  Options options;                 // complete
  bool has_default_arena = false;  // the user has not set the size of arenas
  std::vector<std::string> hosts;  // by rank: the name of its host, for messages
  Topology topology;

  /// For groups of these ranks (world/group.h). Null in a world of one rank. Outlives the monitor.
  std::shared_ptr<GroupInvitations> groups;

  /// Mapped by all ranks of this host if topology.memory_on is true for it; zeros at first.
  SharedMemory memory;

  /// Why ranks of one host use streams although they should share memory, with the first rank that
  /// cannot: "rank 1 on host n1 cannot share memory: ..." Usually empty.
  std::string unshared;

  /// By rank; empty for this rank itself. All ranks are connected if the world spans several hosts
  /// or if a host cannot share memory; otherwise all entries are empty. In a large world an entry is
  /// empty until open_streams(). The calls of the world alone use it.
  std::vector<Streams> streams;

  /// In a large world (control/graph.h), else null. Outlives the monitor.
  std::unique_ptr<WorldSwitchboard> switchboard;

  /// Detects the failure of ranks, and stores and reports it. Null in a world of one rank.
  /// Destroyed first: other ranks receive the reason before they see connections end.
  std::unique_ptr<Monitor> monitor;

  /// "rank 1 on host n1"
  std::string name_of(int other) const {
    return "rank " + std::to_string(other) + " on host " + hosts[static_cast<std::size_t>(other)];
  }
};

}  // namespace muster::collective
