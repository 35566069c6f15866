// A remote program connected to this command's input and output, until it ends or the user detaches
// (ctrl-p ctrl-q, or other keys); and the shell of `muster bash`.
//
// Blocking; I/O on descriptors 0, 1 and 2.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/connection/connection.h"
#include "http/websocket.h"
#include "job/exit_status.h"
#include "job/job.h"

namespace muster::cli::sessions {

/// "ctrl-p,ctrl-q" or "ctrl-@", "ctrl-\", "x": the bytes that a terminal sends for them. Errors:
/// kInvalid.
base::Result<std::string> parse_detach_keys(std::string_view text);

/// The text for messages: "ctrl-p ctrl-q".
std::string words_of_detach_keys(std::string_view keys);

/// Detects the keys in the input, which may be split anywhere.
class DetachKeys {
 public:
  /// Empty: no keys detach.
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}

  /// The part of `typed` for the program. A key that may begin the sequence is held back until the
  /// next key.
  std::string pass(std::string_view typed);

  /// Whether the keys were typed; input after them is dropped.
  bool found() const { return found_; }

 private:
  std::string keys_;
  size_t matched_ = 0;  ///< number of keys matched so far
  bool found_ = false;
};

using base::Result;

struct SessionOptions {
  bool terminal = false;         ///< the program has a terminal; ours is set to raw mode for it
  bool input = true;             ///< false: shows the output only
  std::string detach_keys = {};  ///< the bytes that detach; empty: none
  std::string greeting = {};     ///< a line for standard error at the start
};

struct SessionEnd {
  enum class How {
    kExited,
    kDetached,     ///< by the keys
    kInterrupted,  ///< by a signal to this command
    kPipeClosed,   ///< the reader of the output went away
    kServerGone,   ///< the connection was lost; see `error`
  };
  How how = How::kExited;
  job::ExitStatus exit = {};
  int signal = 0;
  base::Error error = {};
};

/// Runs until the program ends or the user detaches, and restores the terminal. Errors: the output
/// cannot be written; the user is no longer allowed.
Result<SessionEnd> run_session(http::WebSocketClient& socket, const SessionOptions& options);

/// As in a shell: the program's exit code; 128 plus the signal, which is SIGPIPE for a closed pipe; or
/// the code of a lost server.
int exit_code_of(const SessionEnd& end);

/// The command line of the shell, with the caller's terminal type and locale. Pure.
std::vector<std::string> shell_command(const std::map<std::string, std::string>& caller);

struct ShellOptions {
  std::string job;
  std::string task;
  std::string
      reopen;  ///< the command that opens a new shell, for the message after a lost connection
};

/// Runs a shell and returns its exit code. Errors: kUnavailable: the connection was lost.
base::Result<int> run_shell(Connection& connection, const ShellOptions& options);

}  // namespace muster::cli::sessions
