// An HTTP/1.1 client on the event loop: over a unix socket of any user, over TLS, or over plain TCP
// where no one can listen in. Each pending request has its own connection, so requests do not affect
// each other; connections can be kept for later requests (KeepAlive).
//
// A request may turn its connection into a two-way stream of bytes (Upgrade): by status 101, or by
// a 200 whose body is the stream.
//
// On the loop's thread; the loop must outlive all objects. No callback is called from within the
// call that received it, nor after the AsyncCall or RawStream was dropped, which closes the
// connection. A callback may drop it.
//
// Errors name the server: kUnavailable (no answer, not in time, or incomplete), kRefused (no
// permission, or an untrusted certificate), kExhausted (the answer is too long), kInternal (the
// answer is not HTTP). A status of 400 or more is an answer, not an error.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/dial.h"
#include "http/message.h"
#include "http/message_reader.h"

namespace muster::http {

struct AsyncRequest {
  std::string method = "GET";
  std::string target = "/";  ///< path and query, percent-encoded
  Headers headers;
  std::string body;
  /// Sent in chunks instead of `body`. Called for the next piece when the previous one has been
  /// sent; an empty piece is the end. An error ends the request and becomes its result.
  std::function<base::Result<std::string>()> next_piece;
  /// Called when the connection is established. From now on the server may receive the request: if
  /// the answer is lost, the request may still have been carried out. May drop the call.
  std::function<void()> on_sending = {};
};

/// Time limits of a request; 0 means no limit.
struct AsyncLimits {
  /// To connect, including the lookup of the name and the TLS handshake.
  std::chrono::milliseconds connect{5'000};
  /// Between two accepted pieces of the request; then until the end of the answer, or until its
  /// first line if the body is handed on.
  std::chrono::milliseconds answer{60'000};
  /// Between two pieces of a body that is handed on.
  std::chrono::milliseconds silence{0};
  /// The longest body that is kept in memory.
  size_t body_bytes = 64 << 20;
};

class Exchange;

/// A pending request. Dropping it cancels the request.
class AsyncCall {
 public:
  AsyncCall() = default;
  explicit AsyncCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  AsyncCall(AsyncCall&&) noexcept = default;
  AsyncCall& operator=(AsyncCall&& other) noexcept;
  ~AsyncCall();

  /// Stops handing on the body. A piece that has already arrived may still be handed on.
  void pause(bool paused);

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// A connection that has become a stream of bytes.
class RawStream {
 public:
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;
    std::function<void()> on_end;         ///< called once, at the end of the input
    std::function<void()> on_drain = {};  ///< called when all written bytes have been sent
  };

  explicit RawStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream();

  /// If the other side has closed its input, the bytes are discarded.
  void write(std::string_view bytes);
  /// The number of bytes that have not been sent yet.
  size_t waiting() const;
  /// Closes the output after all written bytes. Reading continues.
  void close_output();
  void pause(bool paused);

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// The result of a request to upgrade.
struct Upgraded {
  Response answer;                    ///< complete with its body, if there is no stream
  std::unique_ptr<RawStream> stream;  ///< null: the server did not upgrade
};

/// Connections that are kept after an answer, for the next requests. A server that closes one as the
/// next request is sent makes that request fail: callers repeat requests where that is safe.
struct KeepAlive {
  size_t most = 0;  ///< connections that wait; 0: each request has a new connection
  std::chrono::milliseconds longest_wait{60'000};
};

class AsyncClient {
 public:
  using Answered = std::function<void(base::Result<Response>)>;

  /// `name`: how errors name the server, such as "the engine at unix:///run/docker.sock".
  AsyncClient(base::EventLoop& loop, AsyncPlace place, std::string name, KeepAlive keep = {});

  /// Sends a request and waits for the complete answer.
  [[nodiscard]] AsyncCall send(AsyncRequest request, const AsyncLimits& limits, Answered answered);
  /// Hands the body on as it arrives; if the status is 400 or more, the body is kept. `answered` is
  /// called at the end of the body, or when `on_piece` returns false; `on_head` before the first
  /// piece.
  [[nodiscard]] AsyncCall stream(AsyncRequest request, const AsyncLimits& limits, OnPiece on_piece,
                                 Answered answered, std::function<void()> on_head = {});
  /// Requests an upgrade to a stream of bytes.
  [[nodiscard]] AsyncCall upgrade(AsyncRequest request, const AsyncLimits& limits,
                                  RawStream::Handlers handlers,
                                  std::function<void(base::Result<Upgraded>)> then);

 private:
  base::EventLoop& loop_;
  AsyncPlace place_;
  std::string name_;
  std::shared_ptr<KeptConnections> kept_;  ///< null: none
};

}  // namespace muster::http
