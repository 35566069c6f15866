// Groups: a world of some ranks of another world, the parent.
//
// The first rank of the group opens a rendezvous and sends its address to the members over the
// monitors of the parent; then they join as at any rendezvous. The first rank numbers its attempts,
// and an invitation contains the number. The key of the group is derived from the parent's key,
// from the list of ranks, and from that number. It is therefore never sent, and no two groups can
// be confused.
//
// An attempt may fail, also on some of the ranks only, and members that come later must not try to
// join it. So the first rank withdraws its invitation, and a member that cannot connect looks for a
// later one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
/// once; groups of one list are joined one after the other, and must be joined in the same order
/// everywhere. After an error the members may try again.
///
/// Errors: kBadArgument if the list has duplicates, a rank outside of the world, or not this rank;
/// the failure of `parent`, as soon as it fails; those of join(), whose messages number the ranks of
/// the group, as they state, while Error::rank is a rank of `parent`.
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

  /// The rendezvous of one attempt of the first rank. An invitation without an endpoint withdraws
  /// the one before.
  struct Invitation {
    std::uint64_t attempt = 0;
    std::string endpoint = {};
  };

  /// The groups of one list of ranks.
  struct List {
    std::string name;
    std::mutex turn;                   // of a thread to join a group of the list
    std::uint64_t attempts = 0;        // of this rank, if it is the first; guarded by `turn`
    std::optional<Invitation> latest;  // that this rank has received; guarded by the owner
  };

  /// Valid as long as this object.
  List& list_of(std::span<const int> ranks);

  /// The key of the group of an attempt, equal on all members.
  Bytes key_of(const List& list, std::uint64_t attempt) const;

  static void invite(Monitor& monitor, std::span<const int> members, const List& list,
                     const Invitation& invitation);

  /// Waits for an invitation.
  ///
  /// Errors: the failure of the monitor's world, kTimeout.
  Result<Invitation> await_invitation(List& list, Monitor& monitor, Deadline deadline);

  /// The latest invitation, if it is valid: not withdrawn, and not used.
  std::optional<Invitation> latest(const List& list);

  /// Called when this rank has joined the group of an attempt.
  void use(List& list, std::uint64_t attempt);

 private:
  void take(Bytes payload);
  List& list_named(const std::string& name);

  const Address reachable_;
  const Bytes key_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, List> lists_;  // by name
};

}  // namespace muster::collective
