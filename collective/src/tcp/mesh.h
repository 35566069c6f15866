// The ranks that a backend spans, numbered from 0, with the connections between them: all of a
// world, or some of it. Two meshes over the same world use the same connections, which is right as
// long as every rank makes its calls in one order.
//
// Ownership: refers to the world, which outlives it. Thread-safety: immutable.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "world/world.h"

namespace muster::collective::tcp {

class Mesh {
 public:
  /// `members` are ranks of the world, this one among them; their order numbers them.
  Mesh(World& world, std::vector<int> members);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }

  /// The connections to a member, in the order that both sides agree on.
  std::span<const Descriptor> streams_to(int member) const {
    return world_.streams[static_cast<std::size_t>(world_rank_of(member))].sockets;
  }

  int world_rank_of(int member) const { return members_[static_cast<std::size_t>(member)]; }
  const std::string& host_of(int member) const {
    return world_.hosts[static_cast<std::size_t>(world_rank_of(member))];
  }
  std::string name_of(int member) const { return world_.name_of(world_rank_of(member)); }

  World& world() const { return world_; }
  Monitor& monitor() const { return *world_.monitor; }

  /// Most members on one host.
  int crowd() const;

  /// Whether each rank of this host may have a core to itself, so that waiting awake harms nobody.
  bool may_spin() const { return may_spin_; }

 private:
  World& world_;
  std::vector<int> members_;
  int rank_ = 0;
  bool may_spin_ = false;
};

/// All ranks of a world, in their order.
std::vector<int> everyone_in(const World& world);

}  // namespace muster::collective::tcp
