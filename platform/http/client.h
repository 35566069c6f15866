// A blocking HTTP/1.1 client over a unix socket or TLS, for the command line. One connection, kept
// alive and re-opened as needed. Over a unix socket it checks that the server at the other end is
// this user's (or root's); over TLS, its certificate.
//
// Not thread-safe: one Client a thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "http/message.h"
#include "http/tls.h"

namespace muster::http {

/// What interrupts a blocking read: while `fd` is readable, `on_wake` is called (it must drain the
/// descriptor); it returns false to end the stream.
struct Wake {
  int fd = -1;
  std::function<bool()> on_wake;
};

class Client {
 public:
  explicit Client(std::filesystem::path socket);
  /// Over TLS. Errors of the handshake say what is wrong with the certificate.
  explicit Client(TlsEndpoint endpoint);
  ~Client();

  /// Sends and waits for the whole answer. kUnavailable: nobody answers. kRefused: the server is
  /// somebody else's, or its certificate is not to be trusted.
  /// A status of 400 and more is an answer, not an error.
  base::Result<Response> send(const Request& request);

  /// Sends and hands over the body's pieces as they arrive, until it ends, `on_piece` returns false
  /// or `wake` ends it. A status of 400 and more: nothing is handed over; the body is in the
  /// returned Response. Left early, the Response is as far as it had come, and the connection is
  /// closed. kUnavailable: the server went away before the end.
  base::Result<Response> stream(const Request& request,
                                const std::function<bool(std::string_view)>& on_piece,
                                const Wake& wake = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::http
