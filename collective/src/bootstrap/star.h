// The connections of the rendezvous, from rank 0 to all others, kept until the world has joined.
// Over them the ranks agree on what they found out, and hear at once who failed on the way and why:
// who waits for something else meanwhile polls them too.
//
// Every message is sealed (handshake.h), with its number.
//
// Thread-safety: one thread.
#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/handshake.h"
#include "muster/collective/result.h"
#include "transport/deadline.h"

namespace muster::collective {

class Star {
 public:
  /// Rank 0, with all of its guests.
  Star(Introduction self, std::vector<Guest> guests);

  /// One of the others, with its connection to rank 0.
  Star(Introduction self, Descriptor socket, Handshake handshake, std::string host_of_rank_0);

  /// Every rank hands in at most 4,096 bytes and gets those of all, by rank. Called by all ranks in
  /// the same order.
  ///
  /// Errors: what another rank failed with, kPeerLost, kTimeout.
  Result<std::vector<Bytes>> exchange(ByteView mine, Deadline deadline);

  /// For who waits for something else: appends what is to be polled; attends to what poll() found
  /// in those entries. Errors as above.
  void prepare(std::vector<pollfd>& entries) const;
  Status attend(std::span<const pollfd> entries);

  /// Tells the others that this rank cannot join, as far as they can be told; returns `error`.
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

  Introduction self_;
  std::vector<Spoke> spokes_;  // of rank 0: to all others; of the others: to rank 0
};

}  // namespace muster::collective
