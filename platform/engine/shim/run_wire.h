// What is said with `muster-shim --run FOLDER` and `muster-shim --attach FOLDER` over their
// standard input and output, where whoever asks is elsewhere: a program beside the task's own, and
// the task's own one. Both are streams of frames (base/frame.h), of at most kMaxRunPacket:
//
//   to the shim    p PLAN          the program to run: first message of --run, absent from --attach
//                  i BYTES         input of the program (attachments.h defines it, and all below)
//                  e               end of the input
//                  r ROWS COLUMNS  new size of the terminal
//   from the shim  b               the program has started: first message, unless n comes
//                  n ERROR         the program could not start (JSON: code, what, advice); the last
//                                  message. kNotFound: the task has no such program;
//                                  kConflict: the task does not run
//                  o BYTES         output
//                  x BYTES         error output; absent with a terminal
//                  l NUMBER        number of output bytes left out at this place (--attach only)
//                  c o, c x        the program closed its output, its error output (--run only)
//                  q RECORD        how the program ended (ExitRecord): last message, after all output
//
// The end of the standard input is a hang-up, also while input waits: the program of --run gets
// SIGHUP and, after a moment, SIGKILL; that of --attach is left as it is. It is not the end of the
// program's input, which is a message. Whoever reads slowly holds the program of --run back; of the
// task's own, some output is left out.
//
// Pure; RunReader is not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/frame.h"
#include "base/result.h"
#include "engine/shim/attachments.h"
#include "engine/shim/plan.h"

namespace muster::engine {

/// A program to run beside the task's own.
struct RunStart {
  /// argv, environment, folder and terminal are heeded.
  InnerPlan program;
  /// Its environment stands on top of the task's own (as it is since the task's mpirun is known),
  /// and an empty folder is the task's. False: the environment is all there is, an empty folder is
  /// "/".
  bool inherits = false;
  int rows = 24;  ///< of its terminal, where it has one
  int columns = 80;
};

struct RunBegun {
  bool operator==(const RunBegun&) const = default;
};
/// With code, what and advice.
struct RunRefused {
  base::Error error;
};
struct RunOutputEnd {
  bool is_error = false;
  bool operator==(const RunOutputEnd&) const = default;
};
struct RunEnded {
  ExitRecord record;
};

using RunMessage = std::variant<RunStart, AttachInput, AttachInputEnd, AttachSize, RunBegun,
                                RunRefused, AttachOutput, AttachLeftOut, RunOutputEnd, RunEnded>;

/// Bytes of a packet; only a plan comes near it, with the environment in it.
inline constexpr size_t kMaxRunPacket = 16 << 20;

/// A frame. REQUIRES: an input or output carries at most kAttachPiece bytes.
std::string encode_run(const RunMessage& message);

/// Reads a message from the tag and the bytes of a frame. kInvalid: the bytes are not a message.
base::Result<RunMessage> decode_run(char tag, std::string_view bytes);

/// Cuts a stream that comes in pieces into messages.
class RunReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole message; nullopt: more has to come. A stream that is none of these ends for
  /// good: see is_broken().
  std::optional<RunMessage> next();
  bool is_broken() const { return broken_; }
  /// Bytes that are no whole message yet.
  size_t waiting() const { return frames_.waiting(); }
  size_t kept() const { return frames_.kept(); }  ///< in memory, with what was handed out

 private:
  base::FrameReader frames_{kMaxRunPacket};
  bool broken_ = false;
};

}  // namespace muster::engine
