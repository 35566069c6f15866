// An HTTP/1.1 server on a unix socket, and on TLS over TCP: keep-alive, limits on size and time,
// streamed bodies, WebSockets.
//
// Runs on one EventLoop, which must outlive it; handlers are called on the loop's thread and answer
// now or later, on that thread. The server itself is used there too, or while the loop does not
// run. A handler that throws, or loses its Respond, has its client answered with 500. On the unix
// socket every peer is checked by its credentials: only this user (and root) is let in. Over TLS
// everybody is: who they are is the gate's and the handler's question.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/message.h"
#include "http/tls.h"

namespace muster::http {

using Respond = std::function<void(Response)>;
/// Answers by calling `Respond` exactly once. If the client is gone by then, that is no error.
using Handler = std::function<void(Request, Respond)>;
/// Asked before the body of a request is read, where it did not come with the head: an answer
/// refuses the request, and ends the connection.
using Gate = std::function<std::optional<Response>(const Request& head)>;

struct Limits {
  size_t header_bytes = 64 << 10;
  size_t body_bytes = 4 << 20;
  /// Over TLS, more are hung up on. The unix socket has as many of its own, for strangers must not
  /// lock its owner out; more are answered 503.
  size_t connections = 1000;
  std::chrono::seconds request_timeout{30};  ///< to send a whole request, or between two
  /// How long a client may take nothing of an answer that is on its way to it.
  std::chrono::seconds write_timeout{300};
  size_t connections_of_address = 200;  ///< over TLS, of one address
  /// Over TLS, of all connections together: bytes of heads that have not come in whole, and of
  /// requests that were sent ahead. A client that brings more is answered 503. Bodies are not
  /// counted: the gate lets them in.
  size_t waiting_bytes = 32 << 20;
};

class Server {
 public:
  Server(base::EventLoop& loop, Handler handler, Limits limits = {}, Gate gate = nullptr);
  ~Server();

  /// Listens on `path` (mode 0600), replacing a socket that nobody answers on.
  /// kInvalid: the path is too long for a unix socket, with the length that is allowed.
  base::Result<void> listen(const std::filesystem::path& path);

  /// Listens for TLS on `address`: "0.0.0.0:7443", "[::1]:0", "localhost:7443". Returns where it
  /// listens, with the port that was chosen for 0. May be called besides the other listen().
  /// kInvalid: it is no address, or the identity is of no use; kConflict: the port is taken.
  base::Result<std::string> listen(const std::string& address, const TlsIdentity& identity);
  /// For connections from now on. kInvalid: the identity is of no use; the old one stays.
  base::Result<void> set_identity(const TlsIdentity& identity);
  void set_limits(const Limits& limits);

  /// Connections that are open now; the server may leave when nobody asks for anything.
  size_t connections() const;

  /// Stops listening, removes the unix socket's file, and has every connection end once it has its
  /// answer; `done` is called when the last one has. What has no end is broken off.
  void finish(std::function<void()> done);

  /// Stops listening, removes the unix socket's file and drops every connection.
  void close();

 private:
  class Door;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::http
