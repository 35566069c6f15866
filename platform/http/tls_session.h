// One TLS connection over a socket that does not block: whoever has the socket waits until it is
// ready and then asks again. The server waits by its loop, the client by poll().
//
// Not thread-safe. Does not own the socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/tls_context.h"

// OpenSSL's name of SSL.
struct ssl_st;

namespace muster::http {

/// How far an attempt has come.
struct TlsStep {
  enum class Kind {
    kDone,
    kWantsRead,   ///< again, with the same arguments, when the socket can be read
    kWantsWrite,  ///< again, with the same arguments, when the socket can be written
    kEnd,         ///< the other side has said that it sends no more
    kFailed,      ///< see `fault`; the connection is of no use any more
  };
  Kind kind = Kind::kDone;
  size_t bytes = 0;   ///< read or written
  std::string fault;  ///< in words; empty: the other side is gone without a word
};

class TlsSession {
 public:
  enum class Role { kServer, kClient };
  TlsSession(TlsContext context, int socket, Role role);
  ~TlsSession();

  /// Client only, before the handshake: which server is asked for, and, where the context verifies,
  /// whose name its certificate must have.
  void expect_host(const std::string& host);

  TlsStep handshake();
  TlsStep read(char* buffer, size_t size);
  TlsStep write(std::string_view bytes);
  /// Tells the other side that nothing more comes; reading goes on.
  TlsStep close_output();
  /// The same, tried once: it matters little.
  void say_goodbye();

  /// Of the other side's certificate, once the handshake is done.
  std::string fingerprint() const;
  /// What the other side's certificate lacks, once the handshake has failed for it.
  std::optional<std::string> certificate_fault() const;

 private:
  TlsStep step_of(int result);

  TlsContext context_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  bool usable_ = false;  ///< no fatal error yet: after one, OpenSSL wants no more calls
};

}  // namespace muster::http
