#include "http/websocket.h"

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <utility>

#include "base/text.h"
#include "http/beast_headers.h"
#include "http/server_connection.h"

namespace muster::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;

using base::Error;
using base::ErrorCode;
using base::Result;
using boost::system::error_code;

namespace {

/// A larger message is an error or an attack.
constexpr size_t kLargestMessage = 1 << 20;
/// How long the peer may take to answer a close.
constexpr std::chrono::seconds kCloseTimeout{5};
/// How long a client may take to close the connection after both closes.
constexpr std::chrono::seconds kClientHangUp{2};
constexpr size_t kLongestReason = 120;
/// The payload of a pong that answers no ping.
const websocket::ping_data kHeartbeat("paused");

/// Adapts a ByteStream to Beast. Bytes that were read together with the request are delivered
/// first.
class ByteStreamLayer {
 public:
  using executor_type = asio::io_context::executor_type;

  ByteStreamLayer(asio::io_context& context, std::unique_ptr<ByteStream> stream, std::string early)
      : executor_(context.get_executor()),
        stream_(std::move(stream)),
        early_(std::move(early)),
        timer_(context) {}

  executor_type get_executor() const { return executor_; }
  void close() { stream_->close(); }
  /// Closes the output, and the stream when the peer has closed its own. `then` holds the owner.
  void finish(std::function<void()> then) {
    timer_.expires_after(kClientHangUp);
    timer_.async_wait([this, then](const error_code& error) {
      if (!error) close();
    });
    stream_->async_finish([this, then](const error_code&, size_t) {
      timer_.cancel();
      close();
      then();
    });
  }
  std::chrono::milliseconds silent_for() const { return stream_->silent_for(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    const asio::mutable_buffer into = *asio::buffer_sequence_begin(buffers);
    return asio::async_initiate<Token, void(error_code, size_t)>(
        [this, into](auto handler) {
          auto done = shared(std::move(handler));
          if (early_.empty()) return stream_->async_read_some(into, std::move(done));
          const size_t count = asio::buffer_copy(into, asio::buffer(early_));
          early_.erase(0, count);
          asio::post(executor_, [done = std::move(done), count] { done({}, count); });
        },
        token);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    ByteStream::Pieces pieces;
    const auto end = asio::buffer_sequence_end(buffers);
    auto next = asio::buffer_sequence_begin(buffers);
    for (auto& piece : pieces) {
      if (next != end) piece = *next++;
    }
    return asio::async_initiate<Token, void(error_code, size_t)>(
        [this, pieces](auto handler) {
          stream_->async_write_some(pieces, shared(std::move(handler)));
        },
        token);
  }

 private:
  /// Beast's handlers are move-only, but std::function must be copyable.
  template <class Handler>
  static ByteStream::Done shared(Handler handler) {
    return [held = std::make_shared<Handler>(std::move(handler))](
               const error_code& error, size_t count) { std::move (*held)(error, count); };
  }

  executor_type executor_;
  std::unique_ptr<ByteStream> stream_;
  std::string early_;
  asio::steady_timer timer_;
};

// Beast finds these functions by argument-dependent lookup when it closes a stream.

void beast_close_socket(ByteStreamLayer& layer) {
  layer.close();
}

/// A server that closes at once would reset the connection, because the client's last bytes are
/// still on their way. Proxies take that for a fault: kubectl port-forward then ends.
template <class Handler>
void async_teardown(beast::role_type role, ByteStreamLayer& layer, Handler&& handler) {
  if (role == beast::role_type::server) {
    auto held = std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler));
    return layer.finish([held] { std::move (*held)(error_code()); });
  }
  layer.close();
  asio::post(layer.get_executor(),
             [handler = std::forward<Handler>(handler)]() mutable { handler(error_code()); });
}

using UpgradeRequest = beast::http::request<beast::http::empty_body>;

UpgradeRequest as_beast_has_it(const Request& request) {
  UpgradeRequest upgrade(beast::http::verb::get, "/", 11);
  for (const auto& [name, value] : request.headers) upgrade.set(name, value);
  return upgrade;
}

/// What a client needs to open its end.
struct ClientBegin {
  std::string host;
  std::string target;
  Headers headers;
  std::chrono::seconds ping_every{};
  std::chrono::seconds vanished_after{};
  std::function<void(Result<WebSocketAnswer>)> then;
};

class Session : public WebSocketSession, public std::enable_shared_from_this<Session> {
 public:
  /// The server's end.
  Session(base::EventLoop& loop, std::unique_ptr<ByteStream> stream, Begin begin)
      : begin_(std::move(begin)),
        socket_(loop.context(), std::move(stream), std::move(begin_.early_bytes)),
        upgrade_(as_beast_has_it(begin_.request)),
        timer_(loop.context()) {
    socket_.read_message_max(kLargestMessage);
    socket_.set_option(websocket::stream_base::decorator(
        [headers = begin_.headers](websocket::response_type& response) {
          for (const auto& [name, value] : headers) response.set(name, value);
        }));
    socket_.control_callback([this](websocket::frame_type type, auto) {
      received_ = true;
      if (type == websocket::frame_type::pong) take_pong();
    });
  }

  /// The client's end.
  Session(base::EventLoop& loop, std::unique_ptr<ByteStream> stream, const Limits& limits)
      : begin_({.limits = limits}),
        socket_(loop.context(), std::move(stream), ""),
        timer_(loop.context()),
        is_client_(true) {
    socket_.read_message_max(kLargestMessage);
    // Some servers take each frame for a message.
    socket_.auto_fragment(false);
    socket_.control_callback([this](websocket::frame_type type, auto) {
      if (type == websocket::frame_type::pong) take_pong();
    });
  }

  /// Requests the upgrade. Answers once, unless drop() comes first.
  void shake_hands(ClientBegin client) {
    socket_.set_option(websocket::stream_base::decorator(
        [headers = std::move(client.headers)](websocket::request_type& upgrade) {
          for (const auto& [name, value] : headers) upgrade.set(name, value);
        }));
    const auto done = [self = shared_from_this(),
                       then = std::move(client.then)](const error_code& error) {
      if (!self->dropped_) self->shaken(error, then);
    };
    socket_.async_handshake(upgraded_, client.host, client.target, done);
  }

  void accept() {
    watch();
    socket_.async_accept(upgrade_, [self = shared_from_this()](error_code error) {
      if (error || self->dropped_) return self->drop();
      const auto on_open = std::exchange(self->begin_.on_open, nullptr);
      on_open(self);
      self->read();
    });
  }

  void set_handlers(Handlers handlers) override {
    if (has_reported_close_) return;
    handlers_ = std::move(handlers);
    if (is_client_) read();
  }

  void send(Kind kind, std::string message) override {
    if (dropped_ || close_) return;
    waiting_ += message.size();
    queue_.push_back({kind, std::move(message)});
    write();
  }

  size_t waiting() const override { return waiting_; }

  void close(int code, std::string_view reason) override {
    if (dropped_ || close_) return;
    close_.emplace(static_cast<websocket::close_code>(code),
                   beast::string_view(reason.data(), std::min(reason.size(), kLongestReason)));
    write();
  }

  void pause(bool paused) override {
    paused_ = paused;
    if (paused) return;
    pings_.since = std::chrono::steady_clock::now();  // an answer may be waiting to be read
    read();
  }

  void drop() override {
    if (std::exchange(dropped_, true)) return;
    timer_.cancel();
    socket_.next_layer().close();
    begin_.on_open = nullptr;
    // Posted to the loop, because the caller may be inside one of its callbacks. Until then, the
    // owner of the handlers may go, and removes or replaces them. Callbacks that will never run are
    // released, with everything that they hold.
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), on_end = std::exchange(begin_.on_end, nullptr)] {
                 self->has_reported_close_ = true;
                 const Handlers handlers = std::exchange(self->handlers_, {});
                 if (handlers.on_close) handlers.on_close();
                 if (on_end) on_end();
               });
  }

 private:
  struct Message {
    Kind kind = Kind::kText;
    std::string bytes;
  };

  void shaken(const error_code& error, const std::function<void(Result<WebSocketAnswer>)>& then) {
    if (error == websocket::error::upgrade_declined) {
      WebSocketAnswer refused{.answer = response_of(upgraded_)};
      drop();
      return then(std::move(refused));
    }
    if (error) {
      drop();
      return then(Error{.code = ErrorCode::kUnavailable,
                        .what = "did not open a WebSocket: " + error.message()});
    }
    socket_.set_option(websocket::stream_base::decorator([](websocket::request_type&) {}));
    watch();
    // The caller's reference is not one of those by which pending operations hold the session.
    const auto self = shared_from_this();
    then(WebSocketAnswer{
        .answer = response_of(upgraded_),
        .protocol = std::string(upgraded_[beast::http::field::sec_websocket_protocol]),
        .socket = {self.get(), [self](WebSocket*) {
                     self->set_handlers({});
                     self->drop();
                   }}});
  }

  void read() {
    // A client's end hands nothing over before it has handlers.
    if (is_client_ && !handlers_.on_message) return;
    if (reading_ || paused_ || dropped_) return;
    reading_ = true;
    socket_.async_read(input_, [self = shared_from_this()](error_code error, size_t) {
      self->reading_ = false;
      if (self->dropped_) return;
      // The peer's close has been answered, or ours has, or the peer has vanished.
      if (error) return self->drop();
      self->received_ = true;
      self->hand_over();
      self->read();
    });
  }

  void hand_over() {
    const Kind kind = socket_.got_binary() ? Kind::kBinary : Kind::kText;
    std::string message(static_cast<const char*>(input_.data().data()), input_.size());
    input_.clear();
    const auto on_message = handlers_.on_message;  // may set others
    if (on_message && !close_) on_message(kind, std::move(message));
  }

  void write() {
    if (writing_ || dropped_) return;
    if (queue_.empty()) {
      if (close_ && !std::exchange(closing_, true)) close_socket();
      return;
    }
    writing_ = true;
    pings_.has_sent_since = true;
    pings_.may_be_busy = true;
    write_began_ = ticks_;
    socket_.binary(queue_.front().kind == Kind::kBinary);
    socket_.async_write(asio::buffer(queue_.front().bytes),
                        [self = shared_from_this()](error_code error, size_t) {
                          self->writing_ = false;
                          if (self->dropped_) return;
                          if (error) return self->drop();
                          self->on_written();
                        });
  }

  void on_written() {
    const bool was_full = waiting_ > kHigh;
    waiting_ -= queue_.front().bytes.size();
    queue_.pop_front();
    write();
    const auto on_drain = handlers_.on_drain;
    if (was_full && waiting_ <= kHigh && on_drain) on_drain();
  }

  void close_socket() {
    timer_.expires_after(kCloseTimeout);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->drop();
    });
    socket_.async_close(*close_, [self = shared_from_this()](error_code) { self->drop(); });
  }

  void take_pong() {
    pings_.is_pending = false;
    pings_.may_be_busy = pings_.has_sent_since;
  }

  /// At each tick a client that was silent since the last tick gets a ping. A client that does not
  /// answer its ping is gone after request_timeout, or after write_timeout if it may still have
  /// messages to read. Clients that are being written to are exempt. Of a paused client, the kernel
  /// has to acknowledge heartbeats within write_timeout.
  void watch() {
    timer_.expires_after(begin_.limits.request_timeout);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->dropped_ || self->closing_) return;
      ++self->ticks_;
      if (self->has_vanished()) return self->drop();
      self->watch();
    });
  }

  bool has_vanished() {
    if (is_client_) return has_server_vanished();
    // The answer to the handshake is still being written, and must not be mixed with a ping.
    const bool is_opening = begin_.on_open != nullptr;
    if (is_opening) return ticks_ * begin_.limits.request_timeout > begin_.limits.write_timeout;
    const auto stuck = (ticks_ - write_began_) * begin_.limits.request_timeout;
    if (writing_ && stuck > begin_.limits.write_timeout) return true;
    if (paused_ && !writing_ && has_paused_client_vanished()) return true;
    if (std::exchange(received_, false) || paused_ || writing_) {
      asked_.reset();
      return false;
    }
    if (!asked_) {
      asked_ = ticks_;
      if (std::exchange(pings_.is_pending, true)) return false;
      pings_.has_sent_since = false;
      ask_for_sign_of_life();
      return false;
    }
    // A client that does not take in messages does not reach a ping behind them: write_timeout is
    // its limit, whether the messages wait in this process or in the kernel's buffers.
    const auto longest =
        pings_.may_be_busy ? begin_.limits.write_timeout : begin_.limits.request_timeout;
    return (ticks_ - *asked_) * begin_.limits.request_timeout >= longest;
  }

  /// Nothing is read from a paused client, so an answer to a ping would not be read either, and a
  /// client that cannot write its answer may stop reading. A pong asks for no answer (RFC 6455,
  /// 5.5.3), but the client's kernel acknowledges it, unless its machine is gone.
  bool has_paused_client_vanished() {
    if (socket_.next_layer().silent_for() > begin_.limits.write_timeout) return true;
    send_heartbeat();
    return false;
  }

  /// A server that is busy with a message answers no ping, and may be busy for as long as it likes.
  /// So a missing answer counts only if all messages were sent before the last answered ping.
  bool has_server_vanished() {
    const auto longest = begin_.limits.write_timeout;
    if (socket_.next_layer().silent_for() > longest) return true;
    const auto now = std::chrono::steady_clock::now();
    if (pings_.is_pending) return !pings_.may_be_busy && !paused_ && now - pings_.since > longest;
    pings_ = {.is_pending = true, .may_be_busy = pings_.may_be_busy, .since = now};
    ask_for_sign_of_life();
    return false;
  }

  void ask_for_sign_of_life() {
    owes_ping_ = pinging_;
    if (std::exchange(pinging_, true)) return;
    socket_.async_ping({}, [self = shared_from_this()](error_code error) { self->pinged(error); });
  }

  void send_heartbeat() {
    if (std::exchange(pinging_, true)) return;
    socket_.async_pong(kHeartbeat,
                       [self = shared_from_this()](error_code error) { self->pinged(error); });
  }

  void pinged(const error_code& error) {
    pinging_ = false;
    if (error) return drop();
    if (owes_ping_ && !dropped_ && !closing_) ask_for_sign_of_life();
  }

  Begin begin_;
  websocket::stream<ByteStreamLayer, false> socket_;
  UpgradeRequest upgrade_;
  asio::steady_timer timer_;
  beast::flat_buffer input_;
  Handlers handlers_;
  std::deque<Message> queue_;
  size_t waiting_ = 0;  ///< bytes in queue_
  std::optional<websocket::close_reason> close_;
  struct Pings {
    bool is_pending = false;                      ///< a ping has no answer yet
    bool has_sent_since = false;                  ///< messages were sent after the last ping
    bool may_be_busy = false;                     ///< the peer may not have taken in all messages
    std::chrono::steady_clock::time_point since;  ///< of a client's last ping
  };
  const bool is_client_ = false;
  Pings pings_;
  websocket::response_type upgraded_;  ///< the answer to a client's request
  bool reading_ = false;
  bool writing_ = false;
  bool paused_ = false;
  bool closing_ = false;
  bool dropped_ = false;
  bool has_reported_close_ = false;  ///< the handlers are released
  bool received_ = true;             ///< from the client since the last tick
  bool pinging_ = false;             ///< a ping or a heartbeat is being written
  bool owes_ping_ = false;           ///< a ping is due when that is written
  int64_t ticks_ = 0;
  std::optional<int64_t> asked_;  ///< the tick since which a silent client owes a sign of life
  int64_t write_began_ = 0;
};

/// A client's request from the first packet on.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  using Then = std::function<void(Result<WebSocketAnswer>)>;

  Opening(base::EventLoop& loop, std::string name, Then then)
      : loop_(loop), name_(std::move(name)), then_(std::move(then)) {}

  void begin(const AsyncPlace& place, ClientBegin client, const AsyncLimits& limits) {
    wait_for(limits.connect, "does not accept a connection");
    client.host = host_header(place);
    const bool any = limits.connect.count() == 0;
    dialling_ = dial(loop_, place, name_, any ? std::chrono::hours(1) : limits.connect,
                     [this, client, limits](Result<std::unique_ptr<ByteStream>> stream) {
                       const auto self = shared_from_this();
                       dialling_.reset();
                       if (!stream) return finish(std::move(stream).error());
                       ask(*std::move(stream), client, limits);
                     });
  }

  /// Calls nothing any more.
  void drop() {
    then_ = nullptr;
    let_go();
    if (session_ != nullptr) session_->drop();
  }

 private:
  void ask(std::unique_ptr<ByteStream> stream, ClientBegin client, const AsyncLimits& limits) {
    wait_for(limits.answer, "does not answer");
    session_ = std::make_shared<Session>(
        loop_, std::move(stream),
        Limits{.request_timeout = client.ping_every, .write_timeout = client.vanished_after});
    client.then = [weak = weak_from_this()](Result<WebSocketAnswer> answer) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      if (!answer) {
        Error error = std::move(answer).error();
        error.what = self->name_ + " " + error.what;
        return self->finish(std::move(error));
      }
      self->session_.reset();
      self->finish(std::move(answer));
    };
    session_->shake_hands(std::move(client));
  }

  void wait_for(std::chrono::milliseconds limit, const char* what) {
    deadline_.reset();
    if (limit.count() == 0) return;
    deadline_ = loop_.after(limit, [this, limit, what] {
      finish(
          Error{.code = ErrorCode::kUnavailable,
                .what = name_ + " " + what + " within " + std::to_string(limit.count()) + " ms"});
    });
  }

  void finish(Result<WebSocketAnswer> result) {
    const auto self = shared_from_this();
    let_go();
    if (!result && session_ != nullptr) session_->drop();
    if (const auto then = std::exchange(then_, nullptr)) then(std::move(result));
  }

  void let_go() {
    deadline_.reset();
    dialling_.reset();
  }

  base::EventLoop& loop_;
  std::string name_;
  Then then_;
  std::shared_ptr<void> dialling_;
  std::shared_ptr<Session> session_;
  base::EventLoop::Interest deadline_;
};

/// Whether a header's list contains the word.
bool lists(const Request& request, const std::string& header, std::string_view word) {
  const auto found = request.headers.find(header);
  return found != request.headers.end() && beast::http::token_list(found->second).exists(word);
}

}  // namespace

std::shared_ptr<WebSocketSession> WebSocketSession::start(base::EventLoop& loop,
                                                          std::unique_ptr<ByteStream> stream,
                                                          Begin begin) {
  const auto session = std::make_shared<Session>(loop, std::move(stream), std::move(begin));
  session->accept();
  return session;
}

std::shared_ptr<void> open_websocket(base::EventLoop& loop, const AsyncPlace& place,
                                     const std::string& name, WebSocketRequest request,
                                     const AsyncLimits& limits,
                                     std::function<void(Result<WebSocketAnswer>)> then) {
  ClientBegin client{.target = std::move(request.target),
                     .headers = std::move(request.headers),
                     .ping_every = request.ping_every,
                     .vanished_after = request.vanished_after};
  if (!request.protocols.empty()) {
    client.headers["sec-websocket-protocol"] = base::joined(request.protocols);
  }
  const auto opening = std::make_shared<Opening>(loop, name, std::move(then));
  opening->begin(place, std::move(client), limits);
  return {opening.get(), [opening](void*) { opening->drop(); }};
}

bool requests_websocket(const Request& request) {
  const auto version = request.headers.find("sec-websocket-version");
  return request.method == "GET" && request.headers.contains("sec-websocket-key") &&
         version != request.headers.end() && version->second == "13" &&
         lists(request, "upgrade", "websocket") && lists(request, "connection", "upgrade");
}

}  // namespace muster::http
