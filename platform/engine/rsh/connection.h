// A remote shell's protocol, its connection, and the streams that travel over it.
//
// Inside the encrypted connection there are frames (base/frame.h) of at most kLongestFrame bytes.
// Numbers are four bytes, little endian.
//
//   near to far   c COMMAND         run the command by /bin/sh; first frame, sent once
//                 s NUMBER          send the command this signal
//   far to near   r SENTENCE        the command cannot be run, and why
//                 x CODE SIGNAL     the command has ended and its output is sent; last frame
//   both          d STREAM BYTES    data of a stream: 0 input, 1 output, 2 error output
//                 e STREAM          end of the stream
//                 g STREAM COUNT    the reader of the stream has consumed COUNT more bytes
//                 h STREAM          the stream has no reader any more: stop sending it
//
// At most kWindow bytes of each stream may be sent without a grant. A slow reader of one stream
// therefore never delays other streams, signals or the end.
//
// encode() and FrameReader are pure. The other objects are used by one thread and own their
// descriptors. Their owner polls: it passes interest() to poll(), and the result to turn(). No call
// blocks.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/frame.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::rsh {

/// The greeting of the far end, unencrypted.
inline constexpr std::string_view kGreeting = "MUSTER-RSH 1\n";

inline constexpr size_t kWindow = 1 << 20;
inline constexpr size_t kPiece = 32 << 10;        ///< largest number of bytes of a Data
inline constexpr size_t kLongestFrame = 1 << 20;  ///< limits the length of a command

enum class Stream : uint8_t { kInput = 0, kOutput = 1, kError = 2 };

struct Command {
  std::string line;
  bool operator==(const Command&) const = default;
};
struct SendSignal {
  int number = 0;
  bool operator==(const SendSignal&) const = default;
};
struct Refusal {
  std::string sentence;
  bool operator==(const Refusal&) const = default;
};
struct Ended {
  int code = 0;
  int signal = 0;  ///< 0: the command exited
  bool operator==(const Ended&) const = default;
};
struct Data {
  Stream stream = Stream::kInput;
  std::string bytes;
  bool operator==(const Data&) const = default;
};
struct StreamEnd {
  Stream stream = Stream::kInput;
  bool operator==(const StreamEnd&) const = default;
};
struct Grant {
  Stream stream = Stream::kInput;
  uint32_t bytes = 0;
  bool operator==(const Grant&) const = default;
};
struct HangUp {
  Stream stream = Stream::kInput;
  bool operator==(const HangUp&) const = default;
};

using Frame = std::variant<Command, SendSignal, Refusal, Ended, Data, StreamEnd, Grant, HangUp>;

std::string encode(const Frame& frame);

/// Parses frames from bytes as they arrive.
class FrameReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }

  /// The next complete frame; nullopt: more bytes are needed. kInvalid: the bytes are not frames,
  /// and nothing after them can be read.
  base::Result<std::optional<Frame>> next();

 private:
  base::FrameReader frames_{kLongestFrame};
};

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
