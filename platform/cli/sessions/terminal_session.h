// A program elsewhere, with the input and outputs of this command, until it ends or the user leaves
// it with the detach keys (ctrl-p ctrl-q, or others that were asked for); and the shell that
// `muster bash` opens in a task: which one, and what of the caller's environment goes along.
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

/// "ctrl-p,ctrl-q" or "ctrl-@", "ctrl-\", "x": the bytes that a terminal sends for them. kInvalid:
/// it says no keys.
base::Result<std::string> parse_detach_keys(std::string_view text);

/// As one reads it: "ctrl-p ctrl-q".
std::string words_of_detach_keys(std::string_view keys);

/// Looks for the keys in what is typed, which may come in pieces cut anywhere.
class DetachKeys {
 public:
  /// Empty: nothing leaves.
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}

  /// What of `typed` goes on to the program; a key that may begin the sequence is held back until
  /// the next one is there.
  std::string pass(std::string_view typed);

  /// They were typed; what came behind them is dropped.
  bool found() const { return found_; }

 private:
  std::string keys_;
  size_t matched_ = 0;  ///< so many of them, at the end of what was typed
  bool found_ = false;
};

using base::Result;

struct SessionOptions {
  bool terminal = false;         ///< the program has one: ours is lent to it, where we have one
  bool input = true;             ///< false: it only is listened to
  std::string detach_keys = {};  ///< the bytes that leave it; empty: nothing does
  std::string greeting = {};     ///< a line for standard error, once all keys go to the program
};

struct SessionEnd {
  enum class How {
    kExited,
    kDetached,     ///< by the keys
    kInterrupted,  ///< by a signal to this command
    kServerGone,   ///< it went away in the midst of it; `error` says how
  };
  How how = How::kExited;
  job::ExitStatus exit = {};
  int signal = 0;
  base::Error error = {};
};

/// When it returns, the terminal is as it was. Errors: our own output cannot be written; whoever
/// asked may not any more.
Result<SessionEnd> run_session(http::WebSocketClient& socket, const SessionOptions& options);

/// 0 to 255, as a shell has it: of the program; 128 and the signal; of the server's absence.
int exit_code_of(const SessionEnd& end);

/// The command line of the shell. The caller's terminal and language go along. Pure.
std::vector<std::string> shell_command(const std::map<std::string, std::string>& caller);

struct ShellOptions {
  std::string job;
  std::string task;
  std::string reopen;  ///< the command that opens another, for whoever lost this one
};

/// Runs it; its exit code. kUnavailable where the server went away under it.
base::Result<int> run_shell(Connection& connection, const ShellOptions& options);

}  // namespace muster::cli::sessions
