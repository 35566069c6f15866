// A program elsewhere, with the input and outputs of this command: until it ends, or one leaves.
//
// Blocking; I/O on descriptors 0, 1 and 2.
#pragma once

#include <string>

#include "base/result.h"
#include "http/websocket.h"
#include "job/exit_status.h"

namespace muster::cli {

using base::Result;

struct SessionWish {
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
Result<SessionEnd> run_session(http::WebSocketClient& socket, const SessionWish& wish);

/// 0 to 255, as a shell has it: of the program; 128 and the signal; of the server's absence.
int exit_code_of(const SessionEnd& end);

}  // namespace muster::cli
