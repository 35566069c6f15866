// An HTTP/1.1 server on a unix socket, on TLS over TCP, and for browsers of this machine on plain
// TCP over the loopback interface: keep-alive, limits on size and time, streamed bodies, WebSockets.
//
// Runs on one EventLoop, which must outlive it. Handlers are called on the loop's thread and answer
// now or later, on that thread. The server's methods are called there too, or while the loop does
// not run. If a handler throws or drops its Respond, the client gets 500. On the unix socket, the
// kernel's credentials of each peer are checked: only this user and root are accepted. Over TLS
// every client is accepted, and on the loopback port every program of this machine; the gate and the
// handler authenticate it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/message.h"
#include "http/tls.h"

namespace muster::http {

using Respond = std::function<void(Response)>;
/// Answers by calling `Respond` exactly once. Answering a client that has disconnected is harmless.
using Handler = std::function<void(Request, Respond)>;
/// Called before the body of a request is read, unless it arrived together with the head. An answer
/// refuses the request and closes the connection.
using Gate = std::function<std::optional<Response>(const Request& head)>;

/// Peer::address of a client of the loopback port, which may be any user of this machine.
inline constexpr std::string_view kLoopbackPeer = "loopback";

struct Limits {
  size_t header_bytes = 64 << 10;
  size_t body_bytes = 4 << 20;
  /// Over TLS, a further connection takes the place of the oldest one whose caller is unknown
  /// (Request::identified); if there is none, it is closed at once. The unix socket has the same
  /// limit for itself, so that other hosts cannot lock the owner out; further connections there get
  /// 503.
  size_t connections = 1000;
  std::chrono::seconds request_timeout{30};  ///< for a complete request, and between two
  /// Over TLS, for the handshake, and then for the head of the first request. At most
  /// request_timeout.
  std::chrono::seconds newcomer_timeout{10};
  /// How long a client may accept no byte of its answer, or take in no message of a WebSocket.
  std::chrono::seconds write_timeout{300};
  /// Over TLS, from one address; the /64 network of an IPv6 address counts as one. A further
  /// connection takes the place of another of the address, as above.
  size_t connections_of_address = 200;
  /// Over TLS, for all connections together: bytes of incomplete heads and of pipelined requests. A
  /// client over the limit gets 503. Bodies are not counted, because the gate admits them.
  size_t waiting_bytes = 32 << 20;
};

class Server {
 public:
  Server(base::EventLoop& loop, Handler handler, Limits limits = {}, Gate gate = nullptr);
  ~Server();

  /// Listens on `path` (mode 0600); replaces a socket on which no process answers. kInvalid: the
  /// path is too long for a unix socket; the error names the limit.
  base::Result<void> listen(const std::filesystem::path& path);

  /// Listens for TLS on `address`: "0.0.0.0:7443", "[::1]:0", "localhost:7443". Returns the address
  /// with the port that was chosen for 0. May be called in addition to the other listen().
  /// kInvalid: the address or the identity is invalid; kConflict: the port is taken.
  base::Result<std::string> listen(const std::string& address, const TlsIdentity& identity);

  /// Listens for plain HTTP on 127.0.0.1. Returns the port, which the kernel chooses for 0. May be
  /// called in addition to the other listen(). kConflict: the port is taken.
  base::Result<int> listen_on_loopback(int port);
  /// Closes the loopback port and drops its connections. Not to be called by the handler of
  /// a request that came over that port.
  void close_loopback();
  /// The number of open connections of the loopback port.
  size_t loopback_connections() const;
  /// Replaces the identity for new connections. kInvalid: the identity is invalid; the old one
  /// stays.
  base::Result<void> set_identity(const TlsIdentity& identity);
  void set_limits(const Limits& limits);

  /// The number of open connections. A server without connections may leave.
  size_t connections() const;

  /// Stops listening, removes the unix socket's file, and ends every connection after its current
  /// answer. Endless answers are aborted. `done` is called when the last connection has ended.
  void finish(std::function<void()> done);

  /// Stops listening, removes the unix socket's file and drops every connection.
  void close();

 private:
  class Door;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::http
