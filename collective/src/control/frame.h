// What two ranks say to each other beside the data, and how it travels: that one of them is alive,
// leaves, or gives up and why, and the messages of the layers above.
//
// A frame on the wire, little-endian:
//
//   0  u32  magic "MSCT"
//   4  u16  kind
//   6  u16  topic of a message, else 0
//   8  u32  length of what follows, at most 16 MiB
//   -  probe, alive, goodbye: u64 calls that the sender has entered
//      abort: u32 code, i32 rank, text host, text message, text advice (result.h)
//      message: its payload
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

enum class FrameKind : std::uint16_t {
  kProbe = 1,    // are you there? I am waiting
  kAlive = 2,    // the answer
  kGoodbye = 3,  // I leave in order, after my last call
  kAbort = 4,    // I have failed, for this reason, and so have you
  kMessage = 5,  // for a layer above
};

inline constexpr std::size_t kFrameHeadBytes = 12;
inline constexpr std::size_t kLargestPayload = std::size_t{16} << 20;

struct Frame {
  FrameKind kind = {};
  std::uint16_t topic = 0;    // kMessage only
  std::uint64_t entered = 0;  // kProbe, kAlive and kGoodbye
  Error cause = {};           // kAbort only; its texts are cut off at 16,000 bytes
  Bytes payload = {};         // kMessage only
};

/// A message's payload is at most kLargestPayload bytes long.
Bytes encode(const Frame& frame);

/// Cuts frames out of the bytes of a connection, which come in pieces of any length. Room is made
/// for bytes that have come, not for those that a head promises.
class FrameReader {
 public:
  void feed(ByteView bytes);

  /// The next whole frame, if there is one.
  std::optional<Frame> next();

  /// What came was no frame: the connection is of no more use.
  bool broken() const { return broken_; }

 private:
  std::optional<Frame> decode(FrameKind kind, std::uint16_t topic, ByteView body);

  Bytes received_;
  std::size_t taken_ = 0;  // bytes at the front of received_ that were given out
  bool broken_ = false;
};

}  // namespace muster::collective
