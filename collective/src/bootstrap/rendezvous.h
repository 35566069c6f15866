// The gathering of the world: every rank tells rank 0 where it listens, and learns from rank 0
// where all the others do. Afterwards the port of the rendezvous is closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/handshake.h"
#include "muster/collective/result.h"
#include "transport/deadline.h"

namespace muster::collective {

/// A rank, as all others know it.
struct Member {
  std::string host = {};
  std::string endpoint = {};
  std::string local_endpoint = {};
  std::string host_id = {};
  std::uint64_t arena_bytes = 0;

  bool operator==(const Member&) const = default;
};

/// What rank 0 chose, for all.
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

/// Rank 0: waits for all others at `door`, and closes it once they are there. `self` is rank 0's
/// own introduction; the guests that came are in `guests`, in no order, and wait for an answer.
/// `cancel` is that of Acceptor::next().
///
/// Errors: kMismatch (another world size, a rank that came twice or is out of range; both sides
/// are named, and the guests have been told), kTimeout naming the ranks that did not come.
Result<Roster> gather(Acceptor& door, const Introduction& self, const Terms& terms,
                      std::vector<Guest>& guests, Deadline deadline,
                      std::chrono::milliseconds timeout, int cancel);

/// Rank 0: hands the roster to all guests.
///
/// Errors: kPeerLost, naming the guest that is not there any more.
Status hand_out(const Roster& roster, const std::vector<Guest>& guests, Deadline deadline);

/// The others: waits for the roster after introduce().
///
/// Errors: what rank 0 refused for, kPeerLost when rank 0 ended before, kTimeout.
Result<Roster> receive_roster(const Descriptor& socket, const Handshake& handshake,
                              const Introduction& self, Deadline deadline);

}  // namespace muster::collective
