// A WebSocket (RFC 6455): messages both ways over one connection, for terminals.
//
// Server side: on the EventLoop's thread; Beast stays inside websocket.cc. Pings are answered, and
// sent to a client that says nothing, so a vanished one is noticed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/client.h"
#include "http/message.h"

namespace muster::http {

class WebSocket {
 public:
  enum class Kind { kText, kBinary };
  struct Handlers {
    std::function<void(Kind, std::string)> on_message;
    /// Once: the other side has closed, or is gone. Nothing is called afterwards.
    std::function<void()> on_close;
    /// What was sent is on its way and no more than kHigh bytes wait: go on.
    std::function<void()> on_drain;
  };
  static constexpr size_t kHigh = 256 << 10;

  virtual ~WebSocket() = default;
  virtual void set_handlers(Handlers handlers) = 0;
  /// Queues a message. Whoever sends much waits for on_drain where waiting() passes kHigh.
  virtual void send(Kind kind, std::string message) = 0;
  virtual size_t waiting() const = 0;
  /// Sends what waits, then closes with `code` (1000: all is well) and a reason of at most 120
  /// bytes.
  virtual void close(int code, std::string_view reason) = 0;
  /// For a reader that cannot keep up: no message is read until it is taken back.
  virtual void pause(bool paused) = 0;
};

/// Whether the request asks to become a WebSocket.
bool wants_websocket(const Request& request);

/// The client's end, blocking, for the command line.
class WebSocketClient {
 public:
  struct Message {
    WebSocket::Kind kind = WebSocket::Kind::kText;
    std::string data;
  };

  /// Asks for `request` (its headers go along) to become a WebSocket. An answer other than 101 is
  /// given back as the Response of the refusal in `refusal`, with kRefused.
  static base::Result<std::unique_ptr<WebSocketClient>> open(const std::filesystem::path& socket,
                                                             const Request& request,
                                                             Response& refusal);
  static base::Result<std::unique_ptr<WebSocketClient>> open(const TlsEndpoint& endpoint,
                                                             const Request& request,
                                                             Response& refusal);
  virtual ~WebSocketClient() = default;

  virtual base::Result<void> send(WebSocket::Kind kind, std::string_view message) = 0;
  /// The next message; nothing: it was closed in order. While it waits, `wake` is served.
  virtual base::Result<std::optional<Message>> receive(const Wake& wake) = 0;
  virtual int close_code() const = 0;  ///< of the other side, once receive() gave nothing
};

}  // namespace muster::http
