// The rendezvous: every rank sends its address to rank 0 and receives the addresses of all ranks.
// The port of the rendezvous is closed afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/handshake.h"
#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

/// An entry of the roster: one rank.
struct Member {
  std::string host = {};
  std::string endpoint = {};
  std::string local_endpoint = {};
  std::string host_id = {};  // short, and equal on all ranks of a host
  std::uint64_t arena_bytes = 0;

  bool operator==(const Member&) const = default;
};

/// The settings of rank 0 that apply to all ranks.
struct Terms {
  std::string transport = {};
  std::string algorithm = {};
  int streams = 0;  // 0: the default

  bool operator==(const Terms&) const = default;
};

struct Roster {
  std::vector<Member> members;  // by rank
  Terms terms;

  bool operator==(const Roster&) const = default;
};

/// The key of the connections between the ranks of a world, equal on all of them. A rank of an
/// earlier world of the job, which dials a port that this world uses now, does not hold it.
Bytes key_of_world(const Bytes& key, const Roster& roster);

/// On rank 0: waits for all other ranks at `door`, and closes it then. `self` is rank 0's own
/// identity. `peers` receives the connections, in any order; they wait for an answer. `cancel` is a
/// descriptor whose readability ends the wait; -1: none.
///
/// `note`, if any, is added to the message about missing ranks.
///
/// Errors, which the peers have received: kMismatch (another world size, a duplicate rank or one
/// out of range; the message names both sides), kPeerLost naming a rank that came and ended,
/// kTimeout naming the missing ranks.
Result<Roster> gather(Acceptor& door, const RankIdentity& self, const Terms& terms,
                      std::vector<AcceptedPeer>& peers, Deadline deadline,
                      std::chrono::milliseconds timeout, int cancel, const std::string& note = {});

/// On rank 0: sends the peers the reason why their world does not form, in place of the roster.
void refuse(const Error& reason, const std::vector<AcceptedPeer>& peers, Deadline deadline);

/// On rank 0: sends the roster to all peers.
///
/// Errors: kPeerLost, naming the lost peer.
Status hand_out(const Roster& roster, const std::vector<AcceptedPeer>& peers, Deadline deadline);

/// On other ranks: receives the roster after introduce().
///
/// Errors: the reason why rank 0 refused, kPeerLost if rank 0 ended before or `cancel` turned
/// readable, kTimeout.
Result<Roster> receive_roster(const Descriptor& socket, const Handshake& handshake,
                              const RankIdentity& self, Deadline deadline, int cancel = -1);

}  // namespace muster::collective
