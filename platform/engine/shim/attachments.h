// The input and output of a task's own program, for users who attach to it (`muster attach`).
// The shim's outer half listens on the socket "attach" in the task's folder.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/plan.h"
#include "job/log_record.h"

namespace muster::engine {

// A packet of a task's sockets (attachments.h, run_wire.h): a letter that says what it is, then the
// rest.

inline std::string packet(char type, std::string_view rest) {
  return std::string(1, type).append(rest);
}

// --- messages on the socket
//
// What is said on the socket "attach" in a task's folder: a message a packet (SOCK_SEQPACKET), its
// first byte says which it is.
//
//   to the shim    i BYTES         input of the program
//                  e               the end of it
//                  r ROWS COLUMNS  the terminal has this size now
//   from the shim  o BYTES         output
//                  x BYTES         error output; with a terminal there is none
//                  l NUMBER        so many bytes of output were left out here
//
// How the program ended is not among them: the socket closes when its exit record stands.
//
// Pure; thread-safe.

struct AttachInput {
  std::string bytes;
  bool operator==(const AttachInput&) const = default;
};
struct AttachInputEnd {
  bool operator==(const AttachInputEnd&) const = default;
};
struct AttachSize {
  int rows = 0;
  int columns = 0;
  bool operator==(const AttachSize&) const = default;
};
struct AttachOutput {
  std::string bytes;
  bool is_error = false;
  bool operator==(const AttachOutput&) const = default;
};
struct AttachLeftOut {
  uint64_t bytes = 0;
  bool operator==(const AttachLeftOut&) const = default;
};

using AttachMessage =
    std::variant<AttachInput, AttachInputEnd, AttachSize, AttachOutput, AttachLeftOut>;

/// The most bytes that an input or output carries: a packet holds no more.
inline constexpr size_t kAttachPiece = 32 << 10;
/// The longest packet.
inline constexpr size_t kAttachPacket = kAttachPiece + 64;

std::string encode(const AttachMessage& message);

/// Reads a message from a packet, or from the tag and the bytes of a frame. kInvalid: the bytes are
/// not an attach message.
base::Result<AttachMessage> decode_attach(std::string_view packet);
base::Result<AttachMessage> decode_attach(char tag, std::string_view bytes);

// --- the shim's end
//
// Those who sit before a task's program, as the shim's outer half serves them: any number, each of
// which hears all output from when it came, and all of whom the program hears.
//
// Nobody holds the program up. An attacher that reads too slowly has some of the output left out,
// and is told how much of it; input that the program does not take is not read from them either.
// The terminal has the size that was told last.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.

class Attachments {
 public:
  /// What of the output waits for one attacher at most; the socket holds some more.
  static constexpr size_t kMostWaiting = 1 << 20;
  /// What of the input waits for the program, until no more is read.
  static constexpr size_t kMostInput = 256 << 10;
  /// More than these are turned away.
  static constexpr size_t kMostAttached = 100;

  /// The socket "attach" in the task's folder.
  base::Result<void> listen(const std::string& task_folder);

  /// Where the program's input goes: a pipe's end or a terminal's master; without it, nowhere.
  void set_input(base::UniqueFd input, bool is_terminal);

  /// Appends what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  /// What watch() appended, polled.
  void serve(std::span<const pollfd> polled);

  void output(job::LogStream stream, std::string_view bytes);

  /// Nothing more comes: removes the socket from the folder, hands over what still waits, for a
  /// moment, and lets all go.
  void finish();

 private:
  struct Attached {
    base::UniqueFd socket;
    std::deque<std::string> packets;  ///< that wait
    size_t waiting = 0;               ///< bytes in them
    uint64_t left_out = 0;            ///< bytes that no packet tells of yet
  };

  void accept_all();
  void hear(Attached& one);
  void heed(const AttachMessage& message);
  void write_input();
  void resize(const AttachSize& size);
  void hint_redraw() const;
  static void queue(Attached& one, std::string packet);
  static void send_waiting(Attached& one);
  bool takes_input() const { return input_.size() < kMostInput; }

  base::UniqueFd listener_;
  std::string path_;  ///< of the listening socket; empty before listen()
  base::UniqueFd to_program_;
  bool is_terminal_ = false;
  bool input_ends_ = false;  ///< when what waits is written
  std::string input_;
  std::vector<Attached> attached_;
};

// --- the program's end
//
// What a task's program reads, where it is to read anything: a pipe, or a terminal, which is what
// it writes to as well.

struct ProgramInput {
  base::UniqueFd to_program;    ///< ours; non-blocking. Empty: it reads nothing
  base::UniqueFd from_program;  ///< ours, of a terminal: its output
  base::UniqueFd theirs;        ///< kInnerInput
};

/// As the plan asks; all empty where it asks for neither.
base::Result<ProgramInput> make_program_input(const InnerPlan& plan);

/// What goes to a terminal, as it goes into a log: lines end there with \r\n, here with \n.
class TerminalText {
 public:
  /// `bytes` may be cut anywhere.
  std::string plain(std::string_view bytes);

 private:
  bool returns_ = false;  ///< the last byte was \r, and is held back
};

}  // namespace muster::engine
