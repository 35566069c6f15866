// The control protocol between two ranks: signs of life, goodbye, failures, and the messages of
// higher layers; and the connection that carries it.
//
// A frame on the wire, little-endian:
//
//   0  u32  magic "MSCT"
//   4  u16  kind
//   6  u16  topic of a message, else 0
//   8  u32  length of what follows, at most 16 MiB
//   -  probe: u64 calls that the sender has entered, u8 reach (monitor.h)
//      alive: u64 calls that the sender has entered
//      goodbye: for each rank that has left: i32 rank, u64 calls that it had entered
//      parting: nothing
//      abort: u32 code, i32 rank, text host, text message, text advice (result.h)
//      message: its payload
//      spread: i32 rank that sends it, u64 its number, payload
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {

enum class FrameKind : std::uint16_t {
  kProbe = 1,    // requests kAlive; the sender waits in a call
  kAlive = 2,    // the answer to kProbe
  kGoodbye = 3,  // the sender, or ranks that it names, have left in order, after their last call
  kAbort = 4,    // the failure of the world
  kMessage = 5,  // for a higher layer
  kSpread = 7,   // for a higher layer of all ranks, passed on by each
  kParting = 6,  // the answer to the sender's own goodbye: nothing important follows
};

/// A rank that has left in order.
struct Departure {
  int rank = 0;
  std::uint64_t entered = 0;  // calls

  bool operator==(const Departure&) const = default;
};

inline constexpr std::size_t kFrameHeadBytes = 12;
inline constexpr std::size_t kLargestPayload = std::size_t{16} << 20;

struct Frame {
  FrameKind kind = {};
  std::uint16_t topic = 0;                 // kMessage and kSpread
  std::uint64_t entered = 0;               // kProbe and kAlive
  std::uint8_t reach = 0;                  // kProbe only
  std::vector<Departure> departures = {};  // kGoodbye only
  Error cause = {};                        // kAbort only; its texts are cut off at 16,000 bytes
  Bytes payload = {};                      // kMessage and kSpread
  int origin = 0;                          // kSpread only
  std::uint64_t number = 0;                // kSpread only, from 1
};

/// The payload of a message has at most kLargestPayload bytes.
Bytes encode(const Frame& frame);

/// Splits the bytes of a connection into frames. The pieces may have any length. Memory is
/// allocated for received bytes only, not for a length that a header announces.
class FrameReader {
 public:
  void feed(ByteView bytes);

  /// The next complete frame, if any.
  std::optional<Frame> next();

  /// The received bytes were not a frame: the connection is unusable.
  bool broken() const { return broken_; }

 private:
  std::optional<Frame> decode(FrameKind kind, std::uint16_t topic, ByteView body);

  Bytes received_;
  std::size_t taken_ = 0;  // bytes at the front of received_ that next() has returned
  bool broken_ = false;
};

/// One connection of the monitor: a queue of outgoing bytes, and incoming frames.
///
/// Thread-safety: none. The monitor's lock guards the queue; only the monitor's thread reads.
class ControlConnection {
 public:
  /// The limit of the queue. A longer queue means that the other side does not read.
  static constexpr std::size_t kMostWaiting = std::size_t{256} << 20;

  explicit ControlConnection(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  /// Appends `bytes` to the queue and sends as much as the socket takes now. False if the queue
  /// exceeds kMostWaiting. Bytes for a lost peer are discarded; listen() reports the loss.
  bool send(Bytes bytes);

  /// Sends as much of the queue as the socket takes now.
  void flush();
  bool has_unsent() const { return !waiting_.empty(); }

  /// Ends sending and discards the queue.
  void finish();

  struct Received {
    std::vector<Frame> frames;
    std::optional<int> ended;  // errno; 0 for an orderly shutdown
  };

  /// Reads the available bytes, without waiting.
  Received listen();

 private:
  Descriptor socket_;
  std::deque<Bytes> waiting_;
  std::size_t sent_ = 0;  // bytes of the first element that are sent
  std::size_t waiting_bytes_ = 0;
  bool is_open_ = true;
  FrameReader reader_;
};

}  // namespace muster::collective
