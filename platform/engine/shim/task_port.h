// The port of a task: the shim binds it, checks that a program's port is free, and connects to it
// until a remote shell's server greets.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "launch/task_plan.h"

namespace muster::engine {

// --- greetings
//
// What a remote shell's server says first: sshd its version, Muster's own its name.
//
// Pure.

/// By which the server of muster-rsh is known.
inline constexpr std::string_view kRshGreeting = "MUSTER-RSH";
inline constexpr std::string_view kSshGreeting = "SSH-2.0-";
/// What whoever only wants to see an sshd greet answers, so that it takes the end of the connection
/// for a polite one. Muster's own says nothing and wants no answer.
inline constexpr std::string_view kSshAnswer = "SSH-2.0-muster\r\n";

enum class Greeting {
  kUnfinished,  ///< more has to come
  kSsh,
  kRsh,
  kNone,  ///< it is somebody else
};

/// `bytes`: all that has come so far.
Greeting read_greeting(std::string_view bytes);

// --- the port for ssh
//
// The socket on which a task answers ssh.

/// Binds and listens. kConflict where the address is taken, naming it.
base::Result<base::UniqueFd> listen_on(const std::string& address, int port);

// --- the ports of programs
//
// Whether a port that a task's program is to bind is still nobody's. It was chosen when the task
// was planned, and nobody holds it for the program.

/// kConflict where another process has it, at its address or at all addresses, naming both. Whoever
/// takes it after this is not seen. Of an address that is no IPv4 address (a name) all are tried.
base::Result<void> check_is_free(const launch::ServedPort& served);

// --- waiting for a greeting
//
// Asks the port of this very task until a remote shell's server greets there: the launcher may
// start then.
//
// The port is bound and listened on before, so each connection is taken; one that ends without a
// greeting is tried again after a pause.
//
// Owned and called by one thread, the one that polls: watch() before, serve() after.

class PortProbe {
 public:
  using Steady = std::chrono::steady_clock;

  /// `bound`: the address that is listened on; 0.0.0.0 is asked on 127.0.0.1.
  void start(const std::string& bound, int port);

  /// Appends what is to be polled.
  void watch(std::vector<pollfd>& polled) const;
  /// How long poll(2) may wait at most; -1: until something comes.
  int milliseconds_to_wait() const;
  /// What watch() appended, polled. True, once: it has greeted.
  bool serve(std::span<const pollfd> polled);

 private:
  void connect();
  bool hear();
  void retry();

  std::string address_;
  int port_ = 0;
  base::UniqueFd socket_;
  std::string heard_;
  std::optional<Steady::time_point> again_at_;
};

}  // namespace muster::engine
