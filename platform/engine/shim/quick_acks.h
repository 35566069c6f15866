// Acknowledges the data of ssh handshakes at once.
//
// Before its session begins, an ssh client twice sends two small segments without TCP_NODELAY. Its
// kernel holds the second segment back until the first one is acknowledged (Nagle's algorithm,
// RFC 896). The server's kernel delays acknowledgements by 40 ms (RFC 1122, 4.2.3.2), because the sshd
// has nothing to send before the second segment.
//
// TCP_QUICKACK ends such a wait. It takes effect only once the sshd has read the data, and the kernel
// forgets it when the sshd sends. sshd does not set it at all. So the process that accepts a connection
// keeps a duplicate of its socket for a moment, and sets TCP_QUICKACK every millisecond. The handshake
// takes 40 ms of that moment on an idle machine; on a busy one a wait of 40 ms matters less.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "base/unique_fd.h"

namespace muster::engine {

/// Not thread-safe.
class QuickAcks {
 public:
  using Steady = std::chrono::steady_clock;

  /// How long a connection is taken care of.
  static constexpr std::chrono::milliseconds kHandshake{300};

  /// Takes care of a new connection that the process `server` serves.
  void add(pid_t server, const base::UniqueFd& connection, Steady::time_point now);

  /// Timeout until the next serve(), in milliseconds; -1: no timeout.
  int milliseconds_to_wait() const { return connections_.empty() ? -1 : 1; }

  void serve(Steady::time_point now);

  /// The server has ended. Its client reads the end of the connection only when no process has the
  /// socket any more.
  void ended(pid_t server);

 private:
  struct Connection {
    pid_t server;
    base::UniqueFd socket;
    Steady::time_point until;
  };

  std::vector<Connection> connections_;
};

}  // namespace muster::engine
