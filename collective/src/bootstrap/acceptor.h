// Accepts the connections of peers that prove that they hold the key of the job. Other connections
// (a port scanner, a rank of another job) are dropped. All connections are served at the same time,
// so that no peer can delay another.
//
// Thread-safety: one thread at a time.
#pragma once

#include <poll.h>

#include <deque>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/handshake.h"
#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

/// A connection whose peer has proved that it holds the key.
struct AcceptedPeer {
  Descriptor socket;
  Handshake handshake;
  RankIdentity introduction;
};

class Acceptor {
 public:
  /// Takes over listening sockets. `expected` is the number of peers that may connect at once. If
  /// more connections are open, the oldest is dropped first; connections that have begun a
  /// handshake are kept longer than silent ones.
  Acceptor(std::vector<Descriptor> listeners, Bytes key, std::size_t expected);

  /// The next peer, in the order in which handshakes finish. Polls `others` too, and returns
  /// kPeerLost when one of them is ready; their `revents` are set then.
  ///
  /// Errors: kTimeout at the deadline, kSystem when a listener fails.
  Result<AcceptedPeer> next(Deadline deadline, std::span<pollfd> others = {});

  /// The same in steps, for callers that poll other descriptors too. prepare() appends the entries
  /// to poll and lowers `wake` to the time of the next timeout; attend() handles the results of
  /// those entries, in the same order; take() returns the next peer, if any.
  void prepare(std::vector<pollfd>& entries, Deadline& wake) const;
  Status attend(std::span<const pollfd> entries);
  std::optional<AcceptedPeer> take();

  /// Changes the number of peers that may connect at once.
  void expect(std::size_t expected);

  /// From now on a lack of descriptors or memory is no error: the listeners pause, and the peers wait.
  /// While a world is joined it is one, since it rarely ends by itself there.
  void wait_for_descriptors() { waits_for_descriptors_ = true; }

  /// Stops listening, and closes connections whose handshake has not finished.
  void close();

  /// The dropped connections, for the message about a missing peer; empty if there are none. As in
  /// "1 other connection was dropped, the last from 10.0.0.9:5000 (it holds another key)".
  std::string dropped() const;

 private:
  struct Caller {
    Descriptor socket;
    std::string from;
    Deadline patience;
    ServerHandshake reception;
  };

  Status admit(const Descriptor& listener);
  bool listen(Caller& caller);
  void make_room();
  bool show_out(const Caller& caller, const std::string& reason);
  void show_out_the_slow();

  std::vector<Descriptor> listeners_;
  Bytes key_;
  std::size_t most_callers_ = 0;
  bool waits_for_descriptors_ = false;
  Deadline pause_until_ = {};  // of the listeners
  std::list<Caller> callers_;  // oldest first
  std::deque<AcceptedPeer> peers_;
  int dropped_ = 0;
  std::string last_dropped_;
};

}  // namespace muster::collective
