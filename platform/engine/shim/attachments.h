// The input and output of a task's own program, and the users who attach to them (`muster attach`).
// The shim's outer half listens on the socket "attach" in the task's folder. The engine connects to
// it for each user who attaches.
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
#include "engine/shim/channels.h"
#include "engine/shim/plan.h"
#include "job/log_record.h"

namespace muster::engine {

/// A packet of this protocol or of run_wire.h: a letter for the type, then the content.
inline std::string packet(char type, std::string_view rest) {
  return std::string(1, type).append(rest);
}

// --- messages on the socket
//
// The protocol on the socket "attach" (SOCK_SEQPACKET). Each packet is one message; its first byte
// is the type:
//
//   to the shim    i BYTES         input of the program
//                  e               end of the input
//                  r ROWS COLUMNS  new size of the terminal
//   from the shim  o BYTES         output
//                  x BYTES         error output; absent with a terminal
//                  l NUMBER        number of output bytes left out at this place
//
// No message reports how the program ended: the shim closes the socket once the exit record is
// written.
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

/// The most bytes that one input or output message carries.
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
// Each attached client gets all output from the moment it attaches. The program gets the input of
// all clients.
//
// No client blocks the program. A client that reads too slowly misses some output, and gets the
// number of missing bytes. While the program does not read, the shim reads no input from clients.
// The terminal has the size that a client sent last.
//
// Owned and called by the thread that polls: watch() before poll(2), serve() after.

class Attachments {
 public:
  /// Bytes of output that wait for one client at most; the socket holds some more.
  static constexpr size_t kMostWaiting = 1 << 20;
  /// Bytes of input that wait for the program; the shim reads no more until there are fewer.
  static constexpr size_t kMostInput = 256 << 10;
  /// The connection of a further client is closed at once.
  static constexpr size_t kMostAttached = 100;

  /// Listens on the socket "attach" in the task's folder.
  base::Result<void> listen(const std::string& task_folder);

  /// `input`: a pipe's end or a terminal's master. Without this call, input is dropped.
  void set_input(base::UniqueFd input, bool is_terminal);

  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd>& polled) const;
  /// `polled`: the entries that watch() appended, after poll(2).
  void serve(std::span<const pollfd> polled);

  void output(job::LogStream stream, std::string_view bytes);

  /// The task has ended: removes the socket from the folder, takes a moment to send what waits, and
  /// closes all connections.
  void finish();

 private:
  struct Attached {
    base::UniqueFd socket;
    std::deque<std::string> packets;  ///< not sent yet
    size_t waiting = 0;               ///< bytes in `packets`
    uint64_t left_out = 0;            ///< bytes left out and not reported to the client yet
  };

  void accept_all();
  void receive(Attached& one);
  void take(const AttachMessage& message);
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
  bool input_ends_ = false;  ///< close the program's input once `input_` is written
  std::string input_;
  std::vector<Attached> attached_;
};

// --- the program's end
//
// A task's program reads from a pipe or a terminal, if it reads at all. With a terminal, it also
// writes there.

struct ProgramInput {
  base::UniqueFd to_program;    ///< the shim's end, non-blocking; empty: the program reads nothing
  base::UniqueFd from_program;  ///< the shim's end of a terminal, for the program's output
  base::UniqueFd theirs;        ///< the program's end: kInnerInput
};

/// Makes the pipe or terminal that the plan asks for. All descriptors are empty if the plan asks
/// for neither.
base::Result<ProgramInput> make_program_input(const InnerPlan& plan);
/// Of a terminal that the inner half has made.
base::Result<ProgramInput> program_input_of(PseudoTerminal terminal);

/// Converts the output of a terminal for a log: \r\n becomes \n.
class TerminalText {
 public:
  /// The next bytes of the output, cut anywhere.
  std::string plain(std::string_view bytes);

 private:
  bool returns_ = false;  ///< the last byte was \r; it is held back until the next byte is known
};

}  // namespace muster::engine
