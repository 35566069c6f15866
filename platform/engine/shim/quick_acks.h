// Acknowledges the data of ssh handshakes at once.
//
// An ssh client sends parts of the handshake in two small segments. Until the session begins it does
// not set TCP_NODELAY, so its kernel holds the second segment back until the first one is
// acknowledged (Nagle's algorithm, RFC 896). The kernel of the sshd delays acknowledgements by 40 ms
// (RFC 1122, 4.2.3.2), because sshd has nothing to send before the second segment. A handshake has
// two such waits. TCP_QUICKACK ends a wait, but takes effect only once the sshd has read the data, and
// the kernel forgets it when the sshd sends. sshd does not set it at all. So the process that accepts
// a connection keeps a duplicate of its socket during the handshake, and sets TCP_QUICKACK every
// millisecond while an acknowledgement may be due.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

#include "base/unique_fd.h"

namespace muster::engine {

/// Not thread-safe.
class QuickAcks {
 public:
  using Steady = std::chrono::steady_clock;

  /// More than a handshake has: a client of OpenSSH 9.2 sends 11 times before the session begins.
  static constexpr int kArrivals = 16;

  QuickAcks();

  /// Takes care of a connection that the process `server` serves.
  void add(pid_t server, const base::UniqueFd& connection);

  /// Readable when data has arrived: serve() is to be called.
  int descriptor() const { return arrivals_.get(); }
  /// When serve() is to be called at the latest; -1: when data has arrived.
  int milliseconds_to_wait() const;

  void serve(Steady::time_point now);

  /// The server has ended. Its client reads the end of the connection only when no process has the
  /// socket any more.
  void ended(pid_t server);

 private:
  struct Connection {
    base::UniqueFd socket;
    int arrivals = 0;
    Steady::time_point until;  ///< an acknowledgement may be due until then
  };
  using Connections = std::map<pid_t, Connection>;

  void take_arrivals(Steady::time_point now);
  Connections::iterator leave(Connections::iterator connection);

  base::UniqueFd arrivals_;  ///< epoll, edge-triggered; the data of an event is the server
  Connections connections_;
  bool may_be_due_ = false;  ///< on some connection
};

}  // namespace muster::engine
