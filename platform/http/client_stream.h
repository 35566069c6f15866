// The client's end of a connection, blocking: over a unix socket, or over TLS whose certificate has
// been checked.
//
// Not thread-safe. A callback of `wake` may send, but not receive.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/client.h"
#include "http/tls.h"
#include "http/tls_session.h"

namespace muster::http {

/// Where a server is found: its socket's file, or host and port.
using ServerPlace = std::variant<std::filesystem::path, TlsEndpoint>;

/// As the header "host" has it.
std::string host_header(const ServerPlace& place);

class ClientStream {
 public:
  /// kUnavailable: nobody answers there. kRefused: it is not who it ought to be.
  static base::Result<std::unique_ptr<ClientStream>> connect(const ServerPlace& place);
  /// Over TLS; where the endpoint has a fingerprint, the certificate is not checked at all.
  static base::Result<std::unique_ptr<ClientStream>> meet(const TlsEndpoint& endpoint);
  ~ClientStream();
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  /// Whether the other side has closed a connection that ought to be idle.
  bool is_dead();

  /// What comes while a large message is on its way is taken in, lest both sides wait for the other
  /// to read. With kStop, that also ends the sending: the server has answered before it had all.
  /// Whether all was sent. Where the other side takes no more, that is no error: what it has said
  /// is still to be read.
  enum class WhenAnswered { kStop, kGoOn };
  base::Result<bool> send_all(std::string_view bytes, WhenAnswered when_answered);

  struct Received {
    enum class Kind { kBytes, kEnd, kLeft } kind = Kind::kBytes;  ///< kLeft: `wake` has ended it
    size_t count = 0;
  };
  /// Waits for bytes, serving `wake` meanwhile. kUnavailable: the connection broke.
  base::Result<Received> receive(char* buffer, size_t size, const Wake& wake);

  /// Of the server's certificate; empty over a unix socket.
  std::string fingerprint() const;

 private:
  explicit ClientStream(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::Result<void> shake_hands(const TlsEndpoint& endpoint);
  TlsStep try_to_read(char* buffer, size_t size, bool may_wait);
  TlsStep try_to_write(std::string_view bytes);
  bool read_ahead();
  size_t take_ahead(char* buffer, size_t size);

  base::UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;
  std::string ahead_;  ///< read while we were sending
  size_t ahead_taken_ = 0;
};

}  // namespace muster::http
