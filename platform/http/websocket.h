// A WebSocket (RFC 6455): messages both ways over one connection, for terminals.
//
// WebSocket is the server's end, or the client's end on an event loop (open_websocket); it lives on
// the EventLoop's thread. Pings are answered, and sent to silent clients, so that a vanished client
// is detected. WebSocketClient is a blocking client. Only websocket.cc and websocket_client.cc include
// Beast.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/async_client.h"
#include "http/client.h"
#include "http/dial.h"
#include "http/message.h"

namespace muster::http {

class WebSocket {
 public:
  enum class Kind { kText, kBinary };
  struct Handlers {
    std::function<void(Kind, std::string)> on_message;
    /// Called once, when the peer has closed or vanished. No handler is called afterwards.
    std::function<void()> on_close;
    /// Called when at most kHigh bytes wait to be sent: sending can continue.
    std::function<void()> on_drain;
  };
  static constexpr size_t kHigh = 256 << 10;

  virtual ~WebSocket() = default;
  virtual void set_handlers(Handlers handlers) = 0;
  /// Queues a message. If waiting() exceeds kHigh, the caller should wait for on_drain.
  virtual void send(Kind kind, std::string message) = 0;
  virtual size_t waiting() const = 0;
  /// Sends the queued messages, then closes with `code` (1000: normal) and a reason of at most 120
  /// bytes.
  virtual void close(int code, std::string_view reason) = 0;
  /// While paused, no message is read, so that a slow consumer is not flooded.
  virtual void pause(bool paused) = 0;
};

// --- the client's end, on an event loop

struct WebSocketRequest {
  std::string target = "/";  ///< path and query, percent-encoded
  Headers headers;
  std::vector<std::string> protocols;  ///< subprotocols, in the order of preference
  /// Between two pings; shorter than the idle timeouts of proxies and load balancers.
  std::chrono::seconds ping_every{20};
  std::chrono::seconds vanished_after{60};
};

/// The answer to a request to upgrade.
struct WebSocketAnswer {
  Response answer;       ///< the refusal with its body, if there is no socket
  std::string protocol;  ///< the subprotocol that the server has chosen; empty: none
  /// Null: the server refused. Dropping the last reference closes the connection at once; no handler
  /// is called afterwards.
  std::shared_ptr<WebSocket> socket;
};

/// Opens a connection; `limits.connect` and `limits.answer` bound it. Nothing is read before
/// set_handlers(), which the callback has to call or to precede. Each message is sent as one frame.
///
/// The server has vanished when for `vanished_after` its kernel acknowledges nothing, or, on an idle
/// connection, answers no ping. A server that does not take in messages is slow, not vanished.
///
/// Calls `then` once, later; never after the returned handle was dropped, which cancels the request.
/// Errors: as AsyncClient's.
[[nodiscard]] std::shared_ptr<void> open_websocket(
    base::EventLoop& loop, const AsyncPlace& place, const std::string& name,
    WebSocketRequest request, const AsyncLimits& limits,
    std::function<void(base::Result<WebSocketAnswer>)> then);

/// Whether the request asks for an upgrade to a WebSocket.
bool requests_websocket(const Request& request);

// --- the client's end, blocking

/// For the command line.
class WebSocketClient {
 public:
  struct Message {
    WebSocket::Kind kind = WebSocket::Kind::kText;
    std::string data;
  };

  /// Sends `request`, with its headers, as a request to upgrade. If the answer is not 101, it is
  /// stored in `refusal` and the error is kRefused.
  static base::Result<std::unique_ptr<WebSocketClient>> open(const std::filesystem::path& socket,
                                                             const Request& request,
                                                             Response& refusal);
  static base::Result<std::unique_ptr<WebSocketClient>> open(const TlsEndpoint& endpoint,
                                                             const Request& request,
                                                             Response& refusal);
  virtual ~WebSocketClient() = default;

  /// Waits until the server has taken the message.
  virtual base::Result<void> send(WebSocket::Kind kind, std::string_view message) = 0;
  /// From now on, send() does not wait: it queues what the server does not take at once, and
  /// receive() sends it. `on_drain`: called by send() and receive() when nothing is queued any more.
  virtual void queue_messages(std::function<void()> on_drain) = 0;
  /// Bytes queued. If they exceed WebSocket::kHigh, the caller should wait for on_drain.
  virtual size_t waiting() const = 0;
  /// The next message; nullopt: the peer closed in order. Serves `wake` while waiting.
  virtual base::Result<std::optional<Message>> receive(const Wake& wake) = 0;
  virtual int close_code() const = 0;  ///< the peer's code. REQUIRES: receive() gave nullopt
};

}  // namespace muster::http
