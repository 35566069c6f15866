// The protocol of `muster-shim --run FOLDER` (a program beside the task's own) and `muster-shim
// --attach FOLDER` (the task's own program) on their standard input and output. An engine uses them
// for a task in a container or on another machine. Both streams consist of frames (base/frame.h) of
// at most kMaxRunPacket bytes:
//
//   to the shim    p PLAN          the program to run: first message of --run, absent from --attach
//                  i BYTES         input of the program (this and the next as in attachments.h)
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
// The end of standard input is a hang-up, even while input waits: the program of --run gets SIGHUP
// and, after a moment, SIGKILL; the program of --attach runs on. The end of the program's own input
// is message e. A slow reader blocks the program of --run, and misses output of the program of
// --attach.
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
  /// Only argv, environment, folder and terminal count.
  InnerPlan program;
  /// True: the environment is added to the task's (with the variables for its MPI), and an empty
  /// folder means the task's. False: the program gets only this environment, and an empty folder
  /// means "/".
  bool inherits = false;
  int rows = 24;  ///< of the program's terminal, if it has one
  int columns = 80;
};

struct RunBegun {
  bool operator==(const RunBegun&) const = default;
};
/// The error's code, what and advice are sent.
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

/// Limit of a frame in bytes. Only a plan with a large environment comes near it.
inline constexpr size_t kMaxRunPacket = 16 << 20;

/// The message as a frame. REQUIRES: an input or output carries at most kAttachPiece bytes.
std::string encode_run(const RunMessage& message);

/// Reads a message from the tag and the bytes of a frame. kInvalid: the bytes are not a message.
base::Result<RunMessage> decode_run(char tag, std::string_view bytes);

/// Reads messages from a stream that arrives in pieces.
class RunReader {
 public:
  void add(std::string_view bytes) { frames_.add(bytes); }
  /// The next whole message; nullopt: more bytes are needed, or the stream is_broken().
  std::optional<RunMessage> next();
  /// The bytes are not a stream of messages; next() returns nothing more.
  bool is_broken() const { return broken_; }
  /// Bytes of an unfinished message.
  size_t waiting() const { return frames_.waiting(); }
  size_t kept() const { return frames_.kept(); }  ///< bytes in memory, including read messages

 private:
  base::FrameReader frames_{kMaxRunPacket};
  bool broken_ = false;
};

}  // namespace muster::engine
