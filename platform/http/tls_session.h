// One TLS connection over a non-blocking socket. The owner of the socket waits until it is ready
// and repeats the call: the server by its event loop, the client by poll().
//
// Not thread-safe. Does not own the socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/tls.h"

// OpenSSL's name of SSL.
struct ssl_st;

namespace muster::http {

/// The result of one attempt.
struct TlsStep {
  enum class Kind {
    kDone,
    kWantsRead,   ///< repeat with the same arguments when the socket is readable
    kWantsWrite,  ///< repeat with the same arguments when the socket is writable
    kEnd,         ///< the peer has closed its output
    kFailed,      ///< see `fault`; the connection is unusable
  };
  Kind kind = Kind::kDone;
  size_t bytes = 0;   ///< read or written
  std::string fault;  ///< why it failed; empty: the peer closed the connection without an alert
};

class TlsSession {
 public:
  enum class Role { kServer, kClient };
  TlsSession(TlsContext context, int socket, Role role);
  ~TlsSession();

  /// Client only, before the handshake: the server's name (SNI). If the context verifies, the
  /// certificate must contain it.
  void expect_host(const std::string& host);

  TlsStep handshake();
  TlsStep read(char* buffer, size_t size);
  TlsStep write(std::string_view bytes);
  /// Closes the output; reading continues.
  TlsStep close_output();
  /// The same, tried once, and failures are ignored.
  void try_to_close_output();

  /// The fingerprint of the peer's certificate. REQUIRES: the handshake is done.
  std::string fingerprint() const;
  /// Why the peer's certificate was rejected, if that made the handshake fail.
  std::optional<std::string> certificate_fault() const;

 private:
  TlsStep step_of(int result);

  TlsContext context_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  bool usable_ = false;  ///< no fatal error yet; after one, OpenSSL forbids further calls
};

}  // namespace muster::http
