// What two neighbours say to each other beside the data: that one of them is alive, leaves, or
// gives up and why. It has a connection of its own, since the data connection may be full, or in
// the middle of a segment, just when there is something to say.
//
// A frame on the wire, little-endian:
//
//   0  u32  magic "MSCT"
//   4  u16  kind
//   6  u16  zero
//   8  u32  length of what follows, at most 4,096
//   -  abort only: u32 code, i32 rank, text host, text message, text advice (result.h)
//
// Frames are small and few, so they always fit in the socket's buffer: sending never waits.
#pragma once

#include <cstdint>
#include <variant>

#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/descriptor.h"

namespace muster::collective {

enum class ControlKind : std::uint16_t {
  kProbe = 1,    // are you there? I have been waiting for long
  kAlive = 2,    // the answer
  kGoodbye = 3,  // I leave in order, after my last call
  kAbort = 4,    // I have failed, for this reason, and so have you
};

struct ControlMessage {
  ControlKind kind;
  Error cause = {};  // kAbort only
};

class ControlChannel {
 public:
  struct Nothing {};  // nothing has come yet
  struct Ended {      // the peer closed the connection, or sent what is no frame
    int reason = 0;   // errno, 0 where it closed in order
  };
  using Event = std::variant<Nothing, ControlMessage, Ended>;

  explicit ControlChannel(Descriptor socket) : socket_(std::move(socket)) {}

  const Descriptor& socket() const { return socket_; }

  /// Best effort: a peer that cannot be told any more is noticed when it is listened to.
  void send(const ControlMessage& message);

  /// Tells the peer that nothing more comes; what it says can still be read.
  void finish_sending();

  /// The next message, without waiting.
  Event next();

 private:
  Descriptor socket_;
  Bytes received_;  // the beginning of a frame
};

}  // namespace muster::collective
