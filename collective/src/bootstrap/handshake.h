// How two ranks that have just connected prove to each other that they belong to the same job. A
// challenge and response over HMAC-SHA256: neither sends the key, and neither answer can be
// replayed, as each side's nonce is in it. The side that accepts proves itself first, to strangers
// too; its proof is worth nothing to them, as the roles are part of it.
//
//   caller   opening     "MUSTERCO", u16 version, u16 purpose, nonce                  44 bytes
//   host     challenge   "MUSTERCO", u16 version, u16 purpose, nonce, proof           76 bytes
//                        proof = hmac(key, "host", purpose, both nonces)
//   caller   sealed message "caller": its introduction
//   host     at a rendezvous: sealed message "host", the table or a refusal (rendezvous.h)
//
// A sealed message is u32 length, hmac(key, label, purpose, both nonces, payload), payload. What
// follows on data and control connections is not sealed: the handshake keeps strangers out, it
// does not hide or protect the traffic from who controls the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bootstrap/crypto.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace muster::collective {

inline constexpr std::uint16_t kProtocolVersion = 3;

/// What a connection is for. It is part of every proof, so a connection cannot be taken for
/// another.
enum class Purpose : std::uint16_t { kRendezvous = 1, kData = 2, kControl = 3 };

/// Who is calling.
struct Introduction {
  int rank = 0;
  int size = 0;
  std::string host = {};
  std::string endpoint = {};        // where this rank listens for the others
  std::string local_endpoint = {};  // the same for those on its host
  std::string host_id = {};         // equal on all ranks of a host
  std::uint64_t arena_bytes = 0;    // that it would set aside
  int index = 0;                    // which of several connections of one purpose this is

  std::string name() const { return "rank " + std::to_string(rank) + " on host " + host; }
};

/// What both ends of one connection share once they have exchanged their nonces.
struct Handshake {
  Bytes key;
  Purpose purpose;
  Nonce caller;
  Nonce host;

  Digest mac(std::string_view label, ByteView payload) const;
  Bytes seal(std::string_view label, ByteView payload) const;
};

/// The caller's side: fed with bytes as they come, it never waits.
///
/// Pure, but for the nonce that it is given.
class Approach {
 public:
  enum class Verdict { kMore, kIntroduced, kRefused };

  Approach(const Bytes& key, Purpose purpose, const Nonce& nonce, const Introduction& who);

  /// What is to be sent to the host now; empties it. At first the opening, in the end the
  /// introduction.
  Bytes to_send() { return std::exchange(to_send_, {}); }

  std::size_t wanted() const;

  /// Takes at most wanted() bytes. kIntroduced: handshake() is valid. kRefused: error() says why;
  /// it does not say who the host is.
  Verdict take(ByteView bytes);

  const Handshake& handshake() const { return handshake_; }
  const Error& error() const { return error_; }

 private:
  Verdict refuse(Error error);

  Handshake handshake_;
  Bytes introduction_;
  Bytes received_;
  Bytes to_send_;
  Error error_;
};

/// All of an approach, from the opening to the introduction.
///
/// Errors: kAuthentication where the host holds another key, kMismatch where it speaks another
/// version or something else altogether, kPeerLost where it hung up, kTimeout. The messages do not
/// say who the host is; the caller of this function knows.
Result<Handshake> introduce(const Descriptor& socket, const Bytes& key, Purpose purpose,
                            const Introduction& who, Deadline deadline);

/// Receives one sealed message, at most `limit` bytes long.
Result<Bytes> receive_sealed(const Descriptor& socket, const Handshake& handshake,
                             std::string_view label, std::size_t limit, Deadline deadline);

/// The host's side, for callers of whom nothing is known yet: fed with bytes as they come, it
/// never waits and trusts no length.
///
/// Pure, but for the nonce that it is given.
class Reception {
 public:
  enum class Verdict { kMore, kWelcome, kStranger };

  Reception(const Bytes& key, const Nonce& nonce);

  /// How many bytes to read next, so that nothing beyond the handshake is taken.
  std::size_t wanted() const { return wanted_ - received_.size(); }

  /// Whether the caller has sent what begins a handshake; a scanner has not.
  bool has_begun() const { return stage_ != Stage::kOpening; }

  /// Takes at most wanted() bytes. kWelcome: introduction() and handshake() are valid. kStranger:
  /// hang up; reason() says why.
  Verdict take(ByteView bytes);

  /// What is to be sent to the caller now; empties it.
  Bytes reply() { return std::exchange(reply_, {}); }

  const Introduction& introduction() const { return introduction_; }
  const Handshake& handshake() const { return handshake_; }
  const std::string& reason() const { return reason_; }

 private:
  enum class Stage { kOpening, kHead, kPayload };

  Verdict take_opening();
  Verdict take_head();
  Verdict take_payload();
  Verdict stranger(std::string reason);
  void expect(Stage stage, std::size_t bytes);

  Handshake handshake_;
  Introduction introduction_;
  Stage stage_ = Stage::kOpening;
  std::size_t wanted_;
  Bytes received_;
  Bytes reply_;
  Digest claimed_ = {};  // the mac of the introduction, before it is there to be checked
  std::string reason_;
};

}  // namespace muster::collective
