// The ports of a task. The shim listens on the port for ssh, and connects to it until the server of
// the remote shell greets. It also checks that the ports are free that the program will bind.
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
// The first bytes that the server of a remote shell sends. sshd sends its version, muster-rsh its
// name.

inline constexpr std::string_view kRshGreeting = "MUSTER-RSH";
inline constexpr std::string_view kSshGreeting = "SSH-2.0-";
/// Answer to the greeting of an sshd before the connection is closed: without it, the sshd logs an
/// error. muster-rsh expects no answer.
inline constexpr std::string_view kSshAnswer = "SSH-2.0-muster\r\n";

enum class Greeting {
  kUnfinished,  ///< more bytes are needed
  kSsh,
  kRsh,
  kNone,  ///< neither
};

/// `bytes`: all bytes so far. Pure.
Greeting read_greeting(std::string_view bytes);

// --- the port for ssh
//

/// Binds the address and listens. kConflict: the address is in use.
base::Result<base::UniqueFd> listen_on(const std::string& address, int port);

// --- the ports of programs
//

/// Checks that a port is free that the task's program will bind. The port was chosen when the task
/// was planned, and no process has reserved it since. kConflict: another process uses the port, on
/// this address or on all addresses. If the address is a name, all addresses are checked.
base::Result<void> check_is_free(const launch::ServedPort& served);

// --- waiting for a greeting
//

/// Connects to the task's own port until the server of the remote shell greets; then the launcher
/// can start. The shim listens on the port already, so every connection succeeds. If a connection
/// ends without a greeting, the probe connects again after a pause.
///
/// Owned and called by the thread that polls: watch() before poll(2), serve() after.
class PortProbe {
 public:
  using Steady = std::chrono::steady_clock;

  /// `bound`: the address that the shim listens on; for 0.0.0.0 the probe connects to 127.0.0.1.
  void start(const std::string& bound, int port);

  /// Appends the descriptors to poll.
  void watch(std::vector<pollfd>& polled) const;
  /// Timeout of poll(2); -1: no timeout.
  int milliseconds_to_wait() const;
  /// `polled`: the entries that watch() appended, after poll(2). True: the server has greeted;
  /// returned once.
  bool serve(std::span<const pollfd> polled);

 private:
  void connect();
  bool receive();
  void retry();

  std::string address_;
  int port_ = 0;
  base::UniqueFd socket_;
  std::string received_;
  std::optional<Steady::time_point> again_at_;
};

}  // namespace muster::engine
