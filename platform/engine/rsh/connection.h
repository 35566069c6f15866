// A remote shell's connection, and the streams that travel over it.
//
// One thread. Objects own their descriptors. The owner polls: it calls interest() to learn what to
// wait for, and turn() with the result. No call blocks.
#pragma once

#include <poll.h>

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"
#include "engine/rsh/wire.h"

namespace muster::engine::rsh {

/// Frames over an encrypted channel over a socket.
class RshConnection {
 public:
  /// The far end sends its greeting at once; the near end waits for it before it sends anything.
  RshConnection(End end, base::UniqueFd socket, const Key& key);

  pollfd interest() const;

  /// Reads and writes as much as possible. Errors are phrased to follow the name of the other end.
  /// kUnavailable: the other end does not send the greeting; kRefused: it has another key, or sent
  /// too much before it proved that it has this one.
  base::Result<void> turn(short events);

  bool established() const { return channel_.established(); }
  /// Whether the other end has closed the connection or is unreachable.
  bool lost() const { return lost_; }

  /// REQUIRES: established().
  void send(const Frame& frame);
  base::Result<std::optional<Frame>> next() { return frames_.next(); }

 private:
  base::Result<void> take(std::string_view bytes);
  base::Result<std::string_view> without_greeting(std::string_view bytes);
  void read_some(base::Result<void>& result);
  void write_some();

  base::UniqueFd socket_;
  SecureChannel channel_;
  FrameReader frames_;
  base::ByteQueue unsent_;
  std::string greeting_;   ///< the part of the greeting that has arrived
  bool greets_ = false;    ///< the greeting is not complete yet
  size_t before_key_ = 0;  ///< bytes received before the other end proved that it has the key
  bool lost_ = false;
};

// A descriptor of a stream may be blocking or not: it may be shared with other processes, as a
// terminal is, so its mode cannot be changed. Source and Sink buffer at most kWindow bytes.

/// Reads a descriptor to its end and sends the bytes to the other end.
class Source {
 public:
  Source(Stream stream, base::UniqueFd fd) : stream_(stream), fd_(std::move(fd)) {}

  pollfd interest() const;
  void turn(short events, RshConnection& connection);
  void granted(size_t bytes) { credit_ += bytes; }
  /// The other end has no reader for this stream any more.
  void hang_up() { fd_.reset(); }
  bool ended() const { return !fd_; }

 private:
  Stream stream_;
  base::UniqueFd fd_;
  size_t credit_ = kWindow;
};

/// Writes the bytes of the other end to a descriptor, and closes it at the end of the stream.
class Sink {
 public:
  Sink(Stream stream, base::UniqueFd fd) : stream_(stream), fd_(std::move(fd)) {}

  pollfd interest() const;
  void turn(short events, RshConnection& connection);
  /// Bytes without a reader are dropped. kInvalid: more bytes than the window allows.
  base::Result<void> take(std::string_view bytes);
  void end();
  /// Whether all bytes have been written.
  bool idle() const { return waiting_.empty(); }

 private:
  bool write_some();

  Stream stream_;
  base::UniqueFd fd_;
  base::ByteQueue waiting_;
  size_t not_granted_ = 0;
  bool end_comes_ = false;
};

}  // namespace muster::engine::rsh
