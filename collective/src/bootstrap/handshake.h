// The handshake by which two connected ranks prove to each other that they belong to the same job:
// a challenge and response over HMAC-SHA256. Neither side sends the key, and no answer can be
// replayed, since it contains both nonces. The accepting side proves itself first, also to
// strangers; its proof is useless to them, since the role is part of it.
//
//   caller   opening     "MUSTERCO", u16 version, u16 purpose, nonce                  44 bytes
//   host     challenge   "MUSTERCO", u16 version, u16 purpose, nonce, proof           76 bytes
//                        proof = hmac(key, "host", purpose, both nonces)
//   caller   sealed message "caller": its introduction
//   host     at a rendezvous: sealed message "host", the table or a refusal (rendezvous.h)
//
// A sealed message is u32 length, hmac(key, label, purpose, both nonces, payload), payload. Later
// traffic on data and control connections is not sealed: the handshake keeps strangers out, and
// does not hide or protect the traffic from an attacker who controls the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bootstrap/crypto.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {

inline constexpr std::uint16_t kProtocolVersion = 8;

/// The purpose of a connection. It is part of every proof, so that one kind of connection cannot be
/// mistaken for another.
enum class Purpose : std::uint16_t {
  kRendezvous = 1,
  kData = 2,
  kControl = 3,
  kMemory = 4,  // passes the memory of a host from its lowest rank, in a large world
  kInvite = 5,  // requests data connections from the rank that is called, in a large world
};

/// What a rank sends about itself.
struct RankIdentity {
  int rank = 0;
  int size = 0;
  std::string host = {};
  std::string endpoint = {};        // where this rank listens for other ranks
  std::string local_endpoint = {};  // the same for ranks of its host
  std::string host_id = {};         // equal on all ranks of a host
  std::uint64_t arena_bytes = 0;    // the arena that this rank would reserve
  int index = 0;                    // of the connection, among several of one purpose

  std::string name() const { return "rank " + std::to_string(rank) + " on host " + host; }
};

/// The state that both ends of a connection share after the exchange of nonces.
struct Handshake {
  Bytes key;
  Purpose purpose;
  Nonce caller;
  Nonce host;

  Digest mac(std::string_view label, ByteView payload) const;
  Bytes seal(std::string_view label, ByteView payload) const;
};

/// The connecting side. It is fed with bytes as they arrive and never waits.
///
/// Pure; the nonce is an argument.
class ClientHandshake {
 public:
  enum class Verdict { kMore, kIntroduced, kRefused };

  ClientHandshake(const Bytes& key, Purpose purpose, const Nonce& nonce, const RankIdentity& who);

  /// Returns and clears the bytes to send now: first the opening, finally the identity.
  Bytes to_send() { return std::exchange(to_send_, {}); }

  std::size_t missing_bytes() const;

  /// Takes at most missing_bytes() bytes. kIntroduced: handshake() is valid. kRefused: error() has
  /// the reason, which does not name the host.
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

/// Runs the connecting side from the opening to the identity.
///
/// Errors: kAuthentication if the host holds another key, kMismatch if it uses another version or
/// another protocol, kPeerLost if it closed the connection, kTimeout. The messages do not name the
/// host, which the caller of this function has.
Result<Handshake> introduce(const Descriptor& socket, const Bytes& key, Purpose purpose,
                            const RankIdentity& who, Deadline deadline, int cancel = -1);

/// Receives one sealed message, at most `limit` bytes long. For `cancel` see transport/socket.h.
Result<Bytes> receive_sealed(const Descriptor& socket, const Handshake& handshake,
                             std::string_view label, std::size_t limit, Deadline deadline,
                             int cancel = -1);

/// The accepting side, for connections of unknown origin. It is fed with bytes as they arrive,
/// never waits, and trusts no length.
///
/// Pure; the nonce is an argument.
class ServerHandshake {
 public:
  enum class Verdict { kMore, kWelcome, kStranger };

  ServerHandshake(const Bytes& key, const Nonce& nonce);

  /// The number of bytes to read next, so that no byte after the handshake is taken.
  std::size_t missing_bytes() const { return expected_bytes_ - received_.size(); }

  /// Whether the peer has sent the beginning of a handshake, which a port scanner has not.
  bool has_begun() const { return stage_ != Stage::kOpening; }

  /// Takes at most missing_bytes() bytes. kWelcome: introduction() and handshake() are valid.
  /// kStranger: close the connection; reason() has the reason.
  Verdict take(ByteView bytes);

  /// Returns and clears the bytes to send now.
  Bytes reply() { return std::exchange(reply_, {}); }

  const RankIdentity& introduction() const { return introduction_; }
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
  RankIdentity introduction_;
  Stage stage_ = Stage::kOpening;
  std::size_t expected_bytes_;
  Bytes received_;
  Bytes reply_;
  Digest claimed_ = {};  // the mac of the identity, received before it
  std::string reason_;
};

}  // namespace muster::collective
