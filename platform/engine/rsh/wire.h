// The protocol of a remote shell inside the encrypted connection: frames (base/frame.h) of at most
// kLongestFrame bytes. Numbers are four bytes, little endian.
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
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/frame.h"
#include "base/result.h"

namespace muster::engine::rsh {

/// What the far end sends first, unencrypted.
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

}  // namespace muster::engine::rsh
