#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <boost/throw_exception.hpp>
#include <memory>
#include <utility>

#include "http/beast_headers.h"
#include "http/client.h"
#include "http/url.h"
#include "http/websocket.h"

// The blocking client. The ends on an event loop are in websocket.cc.

namespace muster::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;

using base::Error;
using base::ErrorCode;
using base::Result;
using boost::system::error_code;

namespace {

/// Adapts a ClientStream to Beast. While Beast waits for bytes, `wake` is served.
class ClientStreamLayer {
 public:
  using executor_type = asio::io_context::executor_type;

  explicit ClientStreamLayer(std::unique_ptr<ClientStream> stream) : stream_(std::move(stream)) {}

  /// For Beast's timers, which a blocking stream does not use.
  executor_type get_executor() { return unused_.get_executor(); }

  /// Served while a read waits; reset after the read.
  void serve(const Wake* wake) { wake_ = wake; }
  bool was_left() const { return left_; }
  void close() { stream_.reset(); }

  void queue_messages(std::function<void()> on_drain) {
    queues_ = true;
    if (stream_ != nullptr) stream_->set_on_drain(std::move(on_drain));
  }
  size_t waiting() const { return stream_ == nullptr ? 0 : stream_->waiting(); }

  template <class Buffers>
  size_t read_some(const Buffers& buffers, error_code& error) {
    if (stream_ == nullptr) return failed(error);
    const asio::mutable_buffer into = *asio::buffer_sequence_begin(buffers);
    const auto received = stream_->receive(static_cast<char*>(into.data()), into.size(),
                                           wake_ == nullptr ? Wake{} : *wake_);
    if (!received) return failed(error);
    left_ = received->kind == ClientStream::Received::Kind::kLeft;
    if (left_) error = asio::error::operation_aborted;
    if (received->kind == ClientStream::Received::Kind::kEnd) error = asio::error::eof;
    return received->count;
  }

  template <class Buffers>
  size_t write_some(const Buffers& buffers, error_code& error) {
    size_t size = 0;
    const auto end = asio::buffer_sequence_end(buffers);
    for (auto next = asio::buffer_sequence_begin(buffers); next != end; ++next) {
      const asio::const_buffer piece = *next;
      const std::string_view bytes(static_cast<const char*>(piece.data()), piece.size());
      if (stream_ == nullptr || !send(bytes)) return failed(error);
      size += bytes.size();
    }
    error = {};
    return size;
  }

  // Beast requires these functions, but never calls them.

  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    return throwing([&](error_code& error) { return read_some(buffers, error); });
  }

  template <class Buffers>
  size_t write_some(const Buffers& buffers) {
    return throwing([&](error_code& error) { return write_some(buffers, error); });
  }

 private:
  bool send(std::string_view bytes) {
    if (!queues_) return stream_->send_all(bytes, ClientStream::WhenAnswered::kGoOn).ok();
    stream_->queue(bytes);
    return true;
  }

  static size_t failed(error_code& error) {
    error = asio::error::connection_reset;
    return 0;
  }

  template <class Call>
  static size_t throwing(const Call& call) {
    error_code error;
    const size_t count = call(error);
    if (error) boost::throw_exception(boost::system::system_error(error));
    return count;
  }

  asio::io_context unused_;
  std::unique_ptr<ClientStream> stream_;
  const Wake* wake_ = nullptr;
  bool left_ = false;
  bool queues_ = false;
};

// Beast finds this function by argument-dependent lookup when it closes a stream.
void teardown(beast::role_type, ClientStreamLayer& layer, error_code& error) {
  layer.close();
  error = {};
}

Error broken() {
  return {.code = ErrorCode::kUnavailable,
          .what = "the connection to the server broke",
          .advice = "see the server's log, then try again",
          .detail = std::make_shared<AnswerLost>()};
}

class BlockingSocket : public WebSocketClient {
 public:
  explicit BlockingSocket(std::unique_ptr<ClientStream> stream) : socket_(std::move(stream)) {}

  Result<void> shake_hands(const Request& request, const std::string& host, Response& refusal) {
    socket_.set_option(
        websocket::stream_base::decorator([&request](websocket::request_type& upgrade) {
          for (const auto& [name, value] : request.headers) upgrade.set(name, value);
        }));
    websocket::response_type answer;
    error_code error;
    socket_.handshake(answer, host, format_target(request.path, request.query), error);
    socket_.set_option(websocket::stream_base::decorator([](websocket::request_type&) {}));
    if (!error) return {};
    if (error != websocket::error::upgrade_declined) return broken();
    refusal = response_of(answer);
    return Error{
        .code = ErrorCode::kRefused,
        .what = "the server did not open the connection: status " + std::to_string(refusal.status)};
  }

  Result<void> send(WebSocket::Kind kind, std::string_view message) override {
    error_code error;
    socket_.binary(kind == WebSocket::Kind::kBinary);
    socket_.write(asio::buffer(message), error);
    if (error) return broken();
    return {};
  }

  void queue_messages(std::function<void()> on_drain) override {
    socket_.next_layer().queue_messages(std::move(on_drain));
  }

  size_t waiting() const override { return socket_.next_layer().waiting(); }

  Result<std::optional<Message>> receive(const Wake& wake) override {
    error_code error;
    input_.clear();
    socket_.next_layer().serve(&wake);
    socket_.read(input_, error);
    socket_.next_layer().serve(nullptr);
    if (error == websocket::error::closed || socket_.next_layer().was_left()) {
      return std::optional<Message>();
    }
    if (error) return broken();
    return std::optional(
        Message{.kind = socket_.got_binary() ? WebSocket::Kind::kBinary : WebSocket::Kind::kText,
                .data = {static_cast<const char*>(input_.data().data()), input_.size()}});
  }

  int close_code() const override { return socket_.reason().code; }

 private:
  websocket::stream<ClientStreamLayer, false> socket_;
  beast::flat_buffer input_;
};

Result<std::unique_ptr<WebSocketClient>> open_at(const ServerPlace& place, const Request& request,
                                                 Response& refusal) {
  MUSTER_TRY(auto stream, ClientStream::connect(place));
  auto socket = std::make_unique<BlockingSocket>(std::move(stream));
  MUSTER_CHECK(socket->shake_hands(request, host_header(place), refusal));
  return std::unique_ptr<WebSocketClient>(std::move(socket));
}

}  // namespace

Result<std::unique_ptr<WebSocketClient>> WebSocketClient::open(const std::filesystem::path& socket,
                                                               const Request& request,
                                                               Response& refusal) {
  return open_at(socket, request, refusal);
}

Result<std::unique_ptr<WebSocketClient>> WebSocketClient::open(const TlsEndpoint& endpoint,
                                                               const Request& request,
                                                               Response& refusal) {
  return open_at(endpoint, request, refusal);
}

}  // namespace muster::http
