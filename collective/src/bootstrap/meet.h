// The first step of joining: all ranks meet at the rendezvous of rank 0 and learn each other's
// addresses. The connections of the rendezvous (Star) stay open until the world has joined.
//
// Thread-safety: one thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/handshake.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/rendezvous_file.h"
#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

/// The connections between rank 0 and all other ranks while they join. Over them the ranks exchange
/// results, and learn at once which rank failed and why: a caller that waits for something else
/// polls them too. Every message is sealed (handshake.h) and numbered.
class Star {
 public:
  /// For rank 0, with the connections from all other ranks. `cancel` is a descriptor whose
  /// readability ends every wait; -1: none.
  Star(RankIdentity self, std::vector<AcceptedPeer> peers, int cancel = -1);

  /// For another rank, with its connection to rank 0.
  Star(RankIdentity self, Descriptor socket, Handshake handshake, std::string host_of_rank_0,
       int cancel = -1);

  /// Gathers at most 4,096 bytes from each rank on every rank, by rank. Called by all ranks in the
  /// same order.
  ///
  /// Errors: the failure of another rank, kPeerLost (also if this rank was cancelled), kTimeout.
  Result<std::vector<Bytes>> exchange(ByteView mine, Deadline deadline);

  /// For callers that poll other descriptors too: prepare() appends the entries to poll, attend()
  /// handles their results. Errors as above.
  void prepare(std::vector<pollfd>& entries) const;
  Status attend(std::span<const pollfd> entries);

  /// Reports to all reachable ranks that this rank cannot join; returns `error`.
  Error fail(Error error);

 private:
  struct Spoke {
    int rank;
    std::string host;
    Descriptor socket;
    Handshake handshake;
    Bytes received = {};
    std::optional<Bytes> message = {};
    int sent_count = 0;
    int received_count = 0;
  };

  Status wait_for_messages(Deadline deadline);
  Status listen(Spoke& spoke);
  Status take_whole(Spoke& spoke);
  Status send(Spoke& spoke, const Bytes& payload, Deadline deadline);
  Error gone(const Spoke& spoke, const std::string& reason) const;
  Error not_in_time() const;
  bool is_host() const { return self_.rank == 0; }

  RankIdentity self_;
  int cancel_;
  std::vector<Spoke> spokes_;  // of rank 0: to all others; of the others: to rank 0
};

/// Looks rank 0 up, again for each attempt to connect to it. Returns nullopt if rank 0 cannot be
/// found yet.
using Finder = std::function<Result<std::optional<Meeting>>()>;

/// The input of every step of joining.
struct JoinContext {
  const Options& options;  // complete
  RankIdentity self;       // meet() sets its endpoints
  Terms terms;             // of this rank; those of rank 0 apply to all
  Deadline deadline;
  std::chrono::milliseconds timeout;
  int cancel = -1;   // a descriptor; readable: stop joining
  Finder find = {};  // in place of the rendezvous in `options`; not for rank 0
};

/// What a rank has after the rendezvous, which is closed then.
struct RendezvousResult {
  Roster roster;
  Bytes key;      // of this world: see key_of_world()
  Acceptor door;  // listens at this rank's endpoints for the other ranks
  Star star;
  Address reachable;  // of this rank, for the other ranks
};

// Parts of meet(), for its tests.

/// Listens on each of the addresses that this host has, those that other hosts can reach first.
///
/// Errors: kSystem, if it can listen on none, or if the port of one of them is in use.
Result<std::vector<Descriptor>> listen_on_all(std::vector<Address> addresses);

/// Why other hosts cannot reach rank 0 at `endpoint` if it listens on `addresses`: as in "node0 is
/// 127.0.1.1 on its own host, which other hosts cannot reach". Empty if they can, and for localhost
/// and addresses, which are loopback on purpose.
std::string note_of_loopback(const std::string& endpoint, const std::vector<Address>& addresses);

/// The time limit of one attempt to connect. Of several addresses of a rank, a firewall may drop what
/// is sent to the first.
Deadline limit_of_attempt(std::size_t addresses, Deadline now, Deadline deadline);

/// For a world of two or more ranks. Takes over options.listener.
///
/// Errors: those of Communicator::connect().
Result<RendezvousResult> meet(JoinContext& joining);

}  // namespace muster::collective
