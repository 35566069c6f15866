// A connection to another rank while it is being opened: over the addresses of that rank, one after
// the other, up to the end of the handshake. It never waits, so that one thread can open many
// connections at once and accept others meanwhile.
//
// Thread-safety: one thread at a time.
#pragma once

#include <poll.h>

#include <vector>

#include "bootstrap/handshake.h"
#include "bootstrap/rendezvous.h"
#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

/// The addresses at which `self` may reach `other`, the best first: for all purposes but data the
/// unix socket of a rank of the same host, then TCP. If a host needs data connections at all, they
/// use TCP, within one host too.
///
/// Errors: those of resolve().
Result<std::vector<Address>> addresses_for(Purpose purpose, const Member& other,
                                           const RankIdentity& self);

class Dial {
 public:
  /// `who` is the introduction of this rank; its index is that of the connection. `addresses` is not
  /// empty.
  Dial(Purpose purpose, int rank, std::vector<Address> addresses, Bytes key, RankIdentity who);

  int rank() const { return rank_; }
  int index() const { return who_.index; }
  Purpose purpose() const { return purpose_; }

  /// Delays the first attempt.
  void pause_until(Deadline time) { pause_until_ = time; }

  /// The entry to poll, and the time of the next attempt, if it pauses.
  pollfd prepare(Deadline& wake) const;

  /// Continues with the result of that entry. `deadline` bounds the sending of the handshake, which
  /// always fits in the buffer of a new connection.
  ///
  /// Errors: those of the last address: kAuthentication, kMismatch, kPeerLost, kSystem. They do not
  /// name the rank.
  Status attend(const pollfd& found, Deadline deadline);

  /// Whether the connection is open and its handshake is complete. Then take() returns it.
  bool is_done() const { return stage_ == Stage::kDone; }
  Descriptor take() { return std::move(socket_); }

 private:
  enum class Stage { kPausing, kConnecting, kHandshake, kDone };

  Status connect();
  Status introduce(Deadline deadline);
  Status continue_handshake(Deadline deadline);
  Status try_next_address(Error obstacle);

  Purpose purpose_;
  int rank_;
  std::vector<Address> addresses_;  // not failed yet; the first is the current one
  Bytes key_;
  RankIdentity who_;
  Stage stage_ = Stage::kPausing;
  Deadline pause_until_ = {};
  Descriptor socket_ = {};
  std::vector<ClientHandshake> handshake_ = {};  // one element in stage kHandshake
};

}  // namespace muster::collective
