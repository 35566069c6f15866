#include "http/server_connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"

namespace muster::http {

namespace asio = boost::asio;

namespace {

/// The number of bytes that a client may pipeline before the server stops reading.
constexpr size_t kMostAhead = 64 << 10;

/// How long a client may take to close the connection after its last answer.
constexpr std::chrono::seconds kHangUpTimeout{2};

}  // namespace

/// The answer to one request, shared by all copies of its Respond. If a handler drops them all, the
/// client gets a 500 instead of waiting forever.
class ServerConnection::Answer {
 public:
  explicit Answer(std::weak_ptr<ServerConnection> connection)
      : connection_(std::move(connection)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() {
    if (!given_) give(plain_problem(500, "the server had no answer to this request"));
  }

  /// The first call counts.
  void give(Response response) {
    if (std::exchange(given_, true)) return;
    if (const auto connection = connection_.lock()) connection->answer(std::move(response));
  }

 private:
  std::weak_ptr<ServerConnection> connection_;
  bool given_ = false;
};

ServerConnection::ServerConnection(base::EventLoop& loop,
                                   std::shared_ptr<const Callbacks> callbacks, const Limits& limits,
                                   Peer peer, uint64_t arrival,
                                   std::shared_ptr<size_t> waiting_bytes)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      limits_(limits),
      peer_(std::move(peer)),
      arrival_(arrival),
      deadline_(loop),
      reader_(limits),
      waiting_bytes_(std::move(waiting_bytes)) {}

void ServerConnection::start(std::unique_ptr<ByteStream> stream, OnEnd on_end) {
  on_end_ = std::move(on_end);
  stream_ = std::move(stream);
  deadline_.start(weak_from_this(), [this] { on_deadline(); });
  set_deadline_of_request();
  writer_.start(weak_from_this(), *stream_,
                {.on_write = [this] { deadline_.set(limits_.write_timeout); },
                 .on_pull = [this] { deadline_.clear(); },
                 .on_done = [this] { answered(); },
                 .on_failure = [this] { drop(); }});
  stream_->async_start([self = shared_from_this()](const auto& error, size_t) {
    if (self->phase_ == Phase::kClosed) return;
    // A scanner, a client that does not trust the certificate, or plain HTTP on the TLS port.
    if (error) return self->drop();
    self->expect_request();
  });
}

void ServerConnection::drop() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  if (stream_ != nullptr) stream_->close();
  if (websocket_ != nullptr) websocket_->drop();
  deadline_.stop();
  writer_.drop();
  if (const OnEnd on_end = std::exchange(on_end_, nullptr)) on_end(shared_from_this());
}

void ServerConnection::retire() {
  const bool owes_an_answer =
      phase_ == Phase::kAnswer && !writer_.is_endless() && websocket_ == nullptr;
  if (!owes_an_answer) return drop();
  rules_.keep_alive = false;
  retiring_ = true;
}

void ServerConnection::expect_request() {
  phase_ = Phase::kRequest;
  set_deadline_of_request();
  advance(reader_.put({}));
}

void ServerConnection::set_deadline_of_request() {
  const bool is_newcomer = !peer_.user && !had_head_;
  deadline_.set(is_newcomer ? std::min(limits_.newcomer_timeout, limits_.request_timeout)
                            : limits_.request_timeout);
}

/// Only a client that owes the rest of a request gets an answer; no other client waits for one.
void ServerConnection::on_deadline() {
  if (phase_ != Phase::kRequest || !reader_.in_request()) return drop();
  refuse(408, "the request was not complete in time");
}

void ServerConnection::refuse(int status, const std::string& why) {
  phase_ = Phase::kAnswer;
  rules_.keep_alive = false;
  rules_.head_only = false;
  answer(plain_problem(status, why));
}

void ServerConnection::read() {
  const bool is_full = phase_ == Phase::kAnswer && reader_.kept() >= kMostAhead;
  if (reading_ || input_ended_ || is_full) return;
  reading_ = true;
  stream_->async_read_some(asio::buffer(input_),
                           [self = shared_from_this()](const auto& error, size_t n) {
                             self->reading_ = false;
                             if (self->phase_ == Phase::kClosed || self->phase_ == Phase::kLeaving)
                               return;
                             if (error) return self->on_input_end();
                             self->on_input({self->input_.data(), n});
                           });
}

void ServerConnection::on_input(std::string_view bytes) {
  if (phase_ == Phase::kRequest) return advance(reader_.put(bytes));
  reader_.keep(bytes);
  waiting_bytes_.set(reader_.kept());
  if (waiting_bytes_.is_above(limits_.waiting_bytes)) return drop();
  read();
}

/// A client that closes only its output still reads, so it gets its answer. A stream might never
/// end, so there the end of the client's output counts as a disconnect.
void ServerConnection::on_input_end() {
  input_ended_ = true;
  if (phase_ == Phase::kRequest || writer_.has_stream()) drop();
}

void ServerConnection::advance(RequestReader::Progress progress) {
  waiting_bytes_.set(reader_.kept());
  switch (progress) {
    case RequestReader::Progress::kDone:
      return handle(reader_.take());
    case RequestReader::Progress::kFault:
      return refuse(reader_.fault().status, reader_.fault().what);
    case RequestReader::Progress::kMore:
      if (input_ended_) return drop();
      if (waiting_bytes_.is_above(limits_.waiting_bytes)) {
        return refuse(503, "the server has too many unfinished requests; try again later");
      }
      if (is_refused_at_the_gate()) return;
      if (reader_.awaits_continue()) writer_.write_continue();
      return read();
  }
}

/// Whether the gate refused the request whose head has just arrived. Its answer is then being sent.
bool ServerConnection::is_refused_at_the_gate() {
  std::optional<Request> head = reader_.take_head();
  if (!head) return false;
  if (!std::exchange(had_head_, true)) set_deadline_of_request();
  if (!callbacks_->gate) return false;
  head->peer = peer_;
  head->identified = identified_;
  std::optional<Response> refusal;
  const auto thrown = thrown_by([&] { refusal = callbacks_->gate(*head); });
  if (thrown) {
    base::log_error("the check of a request's head failed: " + *thrown);
    refusal = plain_problem(500, "internal error of the server; see the server's log");
  }
  if (!refusal) return false;
  phase_ = Phase::kAnswer;
  rules_.keep_alive = false;
  rules_.head_only = false;
  answer(*std::move(refusal));
  return true;
}

void ServerConnection::handle(ReadRequest read_request) {
  phase_ = Phase::kAnswer;
  deadline_.clear();
  rules_ = {.keep_alive = read_request.keep_alive,
            .head_only = read_request.head_only,
            .may_chunk = read_request.may_chunk};
  had_head_ = true;
  read_request.request.peer = peer_;
  read_request.request.peer.has_left = [weak = weak_from_this()] {
    const auto self = weak.lock();
    return self == nullptr || self->input_ended_ || self->phase_ == Phase::kClosed;
  };
  read_request.request.identified = identified_;
  // Bytes after a request to upgrade belong to the WebSocket.
  if (requests_websocket(read_request.request) && !reading_) {
    upgrade_ = read_request.request;
  } else {
    read();
  }

  const auto answer = std::make_shared<Answer>(weak_from_this());
  const auto thrown = thrown_by([&] {
    callbacks_->handler(std::move(read_request.request),
                        [answer](Response response) { answer->give(std::move(response)); });
  });
  if (thrown) {
    base::log_error("a request's handler failed: " + *thrown);
    answer->give(plain_problem(500, "internal error of the server; see the server's log"));
  }
}

void ServerConnection::answer(Response response) {
  if (phase_ == Phase::kClosed) return;
  if (response.websocket && upgrade_) return become_websocket(std::move(response));
  if (std::exchange(upgrade_, std::nullopt)) read();
  if (response.websocket) {
    Headers headers = std::move(response.headers);
    response = plain_problem(426, "this request must ask for a WebSocket, version 13");
    response.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    response.headers.merge(headers);
  }
  const bool has_stream = response.stream != nullptr;
  if (has_stream && (input_ended_ || (retiring_ && is_event_stream(response)))) return drop();
  const Framing framing = framing_of(response, rules_);
  if (framing == Framing::kClose) rules_.keep_alive = false;
  writer_.write(std::move(response), framing, rules_);
}

void ServerConnection::become_websocket(Response response) {
  const std::weak_ptr<ServerConnection> weak = weak_from_this();
  websocket_ = WebSocketSession::start(loop_, std::move(stream_),
                                       {.request = *std::move(upgrade_),
                                        .headers = std::move(response.headers),
                                        .limits = limits_,
                                        .early_bytes = reader_.take_kept(),
                                        .on_open = std::move(response.websocket),
                                        .on_end = [weak] {
                                          if (const auto self = weak.lock()) self->drop();
                                        }});
}

void ServerConnection::answered() {
  if (!rules_.keep_alive || input_ended_) return leave();
  expect_request();
}

/// The client may still be sending, and must be able to read its answer.
void ServerConnection::leave() {
  if (retiring_) return drop();
  phase_ = Phase::kLeaving;
  deadline_.set(kHangUpTimeout);
  stream_->async_finish([self = shared_from_this()](const auto&, size_t) { self->drop(); });
}

}  // namespace muster::http
