// One connection of the monitor: bytes that wait to go out, frames that come in.
//
// Thread-safety: none; the monitor's lock guards what goes out, its thread alone reads.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "control/frame.h"
#include "transport/descriptor.h"

namespace muster::collective {

class Line {
 public:
  /// What may wait to go out; more means that the other side does not read.
  static constexpr std::size_t kMostWaiting = std::size_t{256} << 20;

  explicit Line(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  /// Sends what the socket takes now, after what waits already, and keeps the rest. False when too
  /// much waits. What is sent to someone who is gone is lost; listen() notices.
  bool send(Bytes bytes);

  /// Sends what waits, as far as the socket takes it.
  void flush();
  bool wants_to_send() const { return !waiting_.empty(); }

  /// Nothing more will be sent; what waits is given up.
  void finish();

  struct Heard {
    std::vector<Frame> frames;
    std::optional<int> ended;  // errno, 0 where it was closed in order
  };

  /// Reads what is there, without waiting.
  Heard listen();

 private:
  Descriptor socket_;
  std::deque<Bytes> waiting_;
  std::size_t sent_ = 0;  // bytes of the first that are out
  std::size_t waiting_bytes_ = 0;
  bool is_open_ = true;
  FrameReader reader_;
};

}  // namespace muster::collective
