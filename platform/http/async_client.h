// An HTTP/1.1 client on the event loop: over a unix socket, whoever's it is, over TLS, or over TCP
// as it is, where nobody listens in. Each request has a connection of its own; whatever happens on
// it, the others go on.
//
// A request may turn its connection into a stream of bytes both ways (Upgrade): by 101, or by a 200
// whose body is the stream.
//
// On the loop's thread, which must outlive all of it. Nothing is called from within the call that
// it was given to, nor once the AsyncCall or the RawStream has been dropped: that closes the
// connection. A callback may drop it.
//
// Errors, which name the server: kUnavailable (nobody answers, not in time, or not to the end),
// kRefused (this user may not, or a certificate is not to be trusted), kExhausted (an answer of too
// many bytes), kInternal (what came is no HTTP). A status of 400 and more is an answer.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/message.h"
#include "http/response_reader.h"
#include "http/tls_context.h"

namespace muster::http {

struct TlsPlace {
  std::string host;
  int port = 0;
  TlsContext context;  ///< of client_context()
};
/// Nothing on the way is hidden from anybody: whoever sends secrets sees to it that it is short.
struct TcpPlace {
  std::string host;
  int port = 0;
};
using AsyncPlace = std::variant<std::filesystem::path, TlsPlace, TcpPlace>;

struct AsyncRequest {
  std::string method = "GET";
  std::string target = "/";  ///< path and query, percent-encoded
  Headers headers;
  std::string body;
  /// In the place of `body`, sent in chunks: asked for the next piece when the last is on its way;
  /// an empty one is the end. Its error ends the request and is the answer.
  std::function<base::Result<std::string>()> next_piece;
  /// The connection stands, and from now on the server may hear of the request: where its answer is
  /// lost later, it may have been done. May drop the call.
  std::function<void()> on_sending = {};
};

/// 0: any time.
struct AsyncLimits {
  /// To be connected, with the look-up of the name and the handshake.
  std::chrono::milliseconds connect{5'000};
  /// Between two pieces of the request that are taken, then to the answer's end, or to its first
  /// line where its body is handed on.
  std::chrono::milliseconds answer{60'000};
  /// Between two pieces of a body that is handed on.
  std::chrono::milliseconds silence{0};
  /// Of a body that is kept.
  size_t body_bytes = 64 << 20;
};

class Exchange;

/// A request under way. Dropping it ends it.
class AsyncCall {
 public:
  AsyncCall() = default;
  explicit AsyncCall(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  AsyncCall(AsyncCall&&) noexcept = default;
  AsyncCall& operator=(AsyncCall&& other) noexcept;
  ~AsyncCall();

  /// Holds back the body that is handed on. A piece that is here already may still come.
  void pause(bool paused);

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// A connection that has become a stream of bytes.
class RawStream {
 public:
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;
    std::function<void()> on_end;         ///< once: nothing more comes
    std::function<void()> on_drain = {};  ///< all that was written has been taken
  };

  explicit RawStream(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;
  ~RawStream();

  /// Where the other side takes no more, it is lost.
  void write(std::string_view bytes);
  /// Bytes that have not been taken yet.
  size_t waiting() const;
  /// Says, after all that was written, that nothing more comes. Reading goes on.
  void close_output();
  void pause(bool paused);

 private:
  std::shared_ptr<Exchange> exchange_;
};

/// What became of a request to upgrade.
struct Upgraded {
  Response answer;                    ///< where there is no stream, with its body
  std::unique_ptr<RawStream> stream;  ///< null: the server has answered otherwise
};

class AsyncClient {
 public:
  using Answered = std::function<void(base::Result<Response>)>;

  /// `name`: of the server, in errors: "the engine at unix:///run/docker.sock".
  AsyncClient(base::EventLoop& loop, AsyncPlace place, std::string name);

  /// The whole answer.
  [[nodiscard]] AsyncCall send(AsyncRequest request, const AsyncLimits& limits, Answered answered);
  /// Hands the body on as it comes; of a status of 400 and more it is kept. `answered` at its end,
  /// or where `on_piece` wants no more. `on_head`: before, of a body that is handed on.
  [[nodiscard]] AsyncCall stream(AsyncRequest request, const AsyncLimits& limits, OnPiece on_piece,
                                 Answered answered, std::function<void()> on_head = {});
  /// Asks for a stream of bytes.
  [[nodiscard]] AsyncCall upgrade(AsyncRequest request, const AsyncLimits& limits,
                                  RawStream::Handlers handlers,
                                  std::function<void(base::Result<Upgraded>)> then);

 private:
  base::EventLoop& loop_;
  AsyncPlace place_;
  std::string name_;
};

}  // namespace muster::http
