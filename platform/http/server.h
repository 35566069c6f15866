// An HTTP/1.1 server on a unix socket: keep-alive, limits on size and time, streamed bodies.
//
// Runs on one EventLoop, which must outlive it; handlers are called on the loop's thread and answer
// now or later, on that thread. The server itself is used there too, or while the loop does not
// run. A handler that throws, or loses its Respond, has its client answered with 500. Every peer is
// checked by its credentials: only this user (and root) is let in.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/message.h"

namespace muster::http {

using Respond = std::function<void(Response)>;
/// Answers by calling `Respond` exactly once. If the client is gone by then, that is no error.
using Handler = std::function<void(Request, Respond)>;

struct Limits {
  size_t header_bytes = 64 << 10;
  size_t body_bytes = 4 << 20;
  size_t connections = 1000;                 ///< more are answered 503
  std::chrono::seconds request_timeout{30};  ///< to send a whole request, or between two
};

class Server {
 public:
  Server(base::EventLoop& loop, Handler handler, Limits limits = {});
  ~Server();

  /// Listens on `path` (mode 0600), replacing a socket that nobody answers on.
  /// kInvalid: the path is too long for a unix socket, with the length that is allowed.
  base::Result<void> listen(const std::filesystem::path& path);

  /// Connections that are open now; the server may leave when nobody asks for anything.
  size_t connections() const;

  /// Stops listening, removes the socket's file and drops every connection.
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::http
