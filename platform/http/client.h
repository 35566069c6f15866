// A blocking HTTP/1.1 client over a unix socket or TLS, for the command line.
//
// Client keeps one connection alive and reopens it as needed. Over a unix socket it checks that the
// server belongs to this user or to root; over TLS it verifies the certificate. ClientStream is the
// connection below it, which WebSocketClient uses too.
//
// Not thread-safe: use one Client for each thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/message.h"
#include "http/sockets.h"
#include "http/tls.h"
#include "http/tls_session.h"

namespace muster::http {

/// Of a kUnavailable error: the connection ended after the request was sent, or while it was being
/// sent. The server may have carried out the request.
struct AnswerLost : base::ErrorDetail {};

/// Of a kUnavailable error: the wake of the client has ended the request, which the server may have
/// carried out.
struct RequestLeft : AnswerLost {};

class BlockingClient {
 public:
  explicit BlockingClient(std::filesystem::path socket);
  /// Over TLS. An error of the handshake names the fault of the certificate.
  explicit BlockingClient(TlsEndpoint endpoint);
  ~BlockingClient();

  /// Interrupts send() from now on. If `wake.on_wake` returns false, it need not drain the descriptor.
  void set_wake(Wake wake);

  /// Sends a request and waits for the complete answer. kUnavailable: no answer; with
  /// AnswerLost if the connection existed, and with RequestLeft if set_wake() ended it. kRefused: the
  /// server belongs to another user, or its certificate is not trusted. A status of 400 or more is an
  /// answer, not an error.
  base::Result<Response> send(const Request& request);

  /// Sends a request and hands over the pieces of the body as they arrive, until the body ends,
  /// `on_piece` returns false or `wake` ends it. If the status is 400 or more, nothing is handed
  /// over and the body is in the returned Response. If the stream ends early, the Response is
  /// incomplete and the connection is closed. kUnavailable: the server closed the connection
  /// before the end, or `wake` ended the wait for a connection.
  base::Result<Response> stream(const Request& request,
                                const std::function<bool(std::string_view)>& on_piece,
                                const Wake& wake = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The place of a server: its socket's file, or host and port.
using ServerPlace = std::variant<std::filesystem::path, TlsEndpoint>;

/// The value of the header "host".
std::string host_header(const ServerPlace& place);

/// The client's end of a blocking connection, over a unix socket or over verified TLS. A `wake`
/// callback may send, but must not receive.
class ClientStream {
 public:
  /// kUnavailable: no answer. kRefused: the server could not be verified.
  static base::Result<std::unique_ptr<ClientStream>> connect(const ServerPlace& place,
                                                             const Wake& wake = {});
  /// Over TLS; if the endpoint has a fingerprint, the certificate is not verified at all.
  static base::Result<std::unique_ptr<ClientStream>> meet(const TlsEndpoint& endpoint,
                                                          const Wake& wake = {});
  ~ClientStream();
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  /// Whether the server has closed an idle connection.
  bool is_dead();

  /// Sends a large message and buffers what arrives meanwhile, because otherwise both sides could
  /// wait for each other to read. kStop: an early answer from the server ends the sending.
  ///
  /// Returns whether all was sent. If the server stops reading, that is not an error: its answer
  /// can still be received. kUnavailable: `wake`, whose callback must not send here, ended it.
  enum class WhenAnswered { kStop, kGoOn };
  base::Result<bool> send_all(std::string_view bytes, WhenAnswered when_answered,
                              const Wake& wake = {});

  /// Sends without waiting: receive() sends the rest while it waits for bytes. After the first call,
  /// send_all() must not be called any more.
  void queue(std::string_view bytes);
  /// Bytes that queue() has taken and that are not sent yet.
  size_t waiting() const { return unsent_.size(); }
  /// Called when all queued bytes have been sent, or can no longer be sent.
  void set_on_drain(std::function<void()> on_drain) { on_drain_ = std::move(on_drain); }

  struct Received {
    enum class Kind { kBytes, kEnd, kLeft } kind = Kind::kBytes;  ///< kLeft: `wake` ended it
    size_t count = 0;
  };
  /// Waits for bytes and serves `wake` meanwhile. kUnavailable: the connection broke.
  base::Result<Received> receive(char* buffer, size_t size, const Wake& wake);

  /// The fingerprint of the server's certificate; empty over a unix socket.
  std::string fingerprint() const;

 private:
  explicit ClientStream(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::Result<void> shake_hands(const TlsEndpoint& endpoint, const Wake& wake);
  base::Result<Received> wait_for_bytes(char* buffer, size_t size, const Wake& wake);
  TlsStep try_to_read(char* buffer, size_t size, bool may_wait);
  TlsStep try_to_write(std::string_view bytes);
  bool read_ahead();
  void send_queued();
  size_t take_ahead(char* buffer, size_t size);

  base::UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;
  std::string ahead_;  ///< bytes that arrived while this end was sending
  size_t ahead_taken_ = 0;
  size_t received_since_wake_ = 0;
  std::string unsent_;                                           ///< the bytes of queue()
  TlsStep::Kind unsent_waits_for_ = TlsStep::Kind::kWantsWrite;  ///< what sending them waits for
  std::function<void()> on_drain_;
};

/// The fingerprint of the server at `host`:`port`, for a person to compare before it is trusted.
/// kUnavailable: no answer, or `wake` ended the wait.
base::Result<std::string> fingerprint_at(const std::string& host, int port, const Wake& wake = {});

}  // namespace muster::http
