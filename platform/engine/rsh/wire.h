// What the two ends of a remote shell say to each other, inside their encrypted connection: frames
// (base/frame.h) of at most kLongestFrame. Numbers are four bytes, little endian.
//
//   near to far   c COMMAND         run it by /bin/sh; the first frame, and the only one of its
//   kind
//                 s NUMBER          send it this signal
//   far to near   r SENTENCE        it cannot be run: why
//                 x CODE SIGNAL     it has ended, all of its output is sent; the last frame
//   both          d STREAM BYTES    data of a stream: 0 input, 1 output, 2 error output
//                 e STREAM          the end of it
//                 g STREAM COUNT    whoever reads it has taken so many bytes more
//                 h STREAM          nobody reads it any more: send no more of it
//
// Of each stream at most kWindow bytes are under way that were not granted back, so what one end
// cannot get rid of never holds up the other streams, signals or the end.
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

/// What the far end says, in the clear, before anything else.
inline constexpr std::string_view kGreeting = "MUSTER-RSH 1\n";

inline constexpr size_t kWindow = 1 << 20;
inline constexpr size_t kPiece = 32 << 10;        ///< the most bytes of a Data
inline constexpr size_t kLongestFrame = 1 << 20;  ///< a command, at the longest

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
  int signal = 0;  ///< 0: it ended by itself
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

/// Takes frames out of bytes as they come.
class FrameReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }

  /// The next one that is whole; nothing: more bytes are needed. kInvalid: these are no frames, and
  /// nothing that follows can be read.
  base::Result<std::optional<Frame>> next();

 private:
  base::FrameReader frames_{kLongestFrame};
};

}  // namespace muster::engine::rsh
