// Groups: a world of some ranks of another world, the parent.
//
// The first rank of the group opens a rendezvous and sends its address to the members over the
// monitors of the parent; then they join as at any rendezvous. The key of the group is derived from
// the parent's key, from the list of ranks, and from the number of times that the list was joined
// before. It is therefore never sent, and no two groups can be confused.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "control/monitor.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/socket.h"
#include "world/share.h"
#include "world/world.h"

namespace muster::collective {

/// Joins `ranks`, which become ranks 0, 1, ... of the group in this order. Each member calls it
/// with the same list. Members may join different groups in any order, also on several threads at
/// once; groups of one list must be joined in the same order everywhere.
///
/// Errors: kBadArgument if the list has duplicates, a rank outside of the world, or not this rank;
/// the failure of `parent`, as soon as it fails; those of join(), with the ranks of the group.
Result<std::unique_ptr<World>> join_group(World& parent, std::span<const int> ranks,
                                          const MemoryBytes& memory_bytes);

/// The state of a world for its groups: the address of this rank, the key, and the received
/// invitations.
///
/// Thread-safety: all methods, from any thread.
class GroupInvitations {
 public:
  /// Receives the invitations of `monitor`, and must outlive it.
  GroupInvitations(Address reachable, Bytes key, Monitor& monitor);

  const Address& reachable() const { return reachable_; }

  /// The name and the key of a group.
  struct Identity {
    std::string name;
    Bytes key;
  };

  /// The identity of the next group of this list: different each time, equal on all members.
  Identity next(std::span<const int> ranks);

  /// Sends the address of a group's rendezvous to a member.
  static void invite(Monitor& monitor, int member, const Identity& group,
                     const std::string& endpoint);

  /// Waits for the address of a group's rendezvous.
  ///
  /// Errors: the failure of the monitor's world, kTimeout.
  Result<std::string> invitation(const Identity& group, Monitor& monitor, Deadline deadline);

 private:
  void take(Bytes payload);

  const Address reachable_;
  const Bytes key_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::vector<int>, std::uint64_t> joined_;
  std::map<std::string, std::string> endpoints_;  // by name of the group
};

}  // namespace muster::collective
