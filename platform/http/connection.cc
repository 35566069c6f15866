#include "http/connection.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
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

constexpr std::string_view kChunkEnd = "\r\n";

/// The content-length of a stream, if its headers contain a valid one.
std::optional<uint64_t> given_length(const Headers& headers) {
  const auto said = headers.find("content-length");
  uint64_t length = 0;
  if (said == headers.end()) return std::nullopt;
  const char* const end = said->second.data() + said->second.size();
  const auto read = std::from_chars(said->second.data(), end, length);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return length;
}

/// Removes the written bytes from the front. True: nothing is left.
bool take_off(ByteStream::Pieces& pieces, size_t written) {
  bool empty = true;
  for (asio::const_buffer& piece : pieces) {
    const size_t part = std::min(written, piece.size());
    piece += part;
    written -= part;
    empty = empty && piece.size() == 0;
  }
  return empty;
}

std::string chunk_head(size_t size) {
  std::array<char, 20> text{};
  const int length = std::snprintf(text.data(), text.size(), "%zx\r\n", size);
  return {text.data(), static_cast<size_t>(length)};
}

/// Runs code of the server's user. Returns the text of its exception, if any.
template <class Code>
std::optional<std::string> thrown_by(const Code& code) {
  try {
    code();
    return std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

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

ServerConnection::Connection(base::EventLoop& loop, std::shared_ptr<const Callbacks> callbacks,
                             const Limits& limits, Peer peer, std::shared_ptr<size_t> waiting_bytes)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      limits_(limits),
      peer_(std::move(peer)),
      timer_(loop.context()),
      reader_(limits),
      waiting_bytes_(std::move(waiting_bytes)) {}

ServerConnection::~ServerConnection() {
  count_waiting_bytes(0);
}

void ServerConnection::start(std::unique_ptr<ByteStream> stream, OnEnd on_end) {
  on_end_ = std::move(on_end);
  stream_ = std::move(stream);
  set_deadline(limits_.request_timeout);
  stream_->async_start([self = shared_from_this()](const auto& error, size_t) {
    if (self->closed_) return;
    // A scanner, a client that does not trust the certificate, or plain HTTP on the TLS port.
    if (error) return self->drop();
    self->started_ = true;
    self->expect_request();
  });
}

void ServerConnection::drop() {
  if (std::exchange(closed_, true)) return;
  if (stream_ != nullptr) stream_->close();
  if (websocket_ != nullptr) websocket_->drop();
  timer_.cancel();
  body_.reset();
  if (const OnEnd on_end = std::exchange(on_end_, nullptr)) on_end(shared_from_this());
}

void ServerConnection::retire() {
  const bool owes_an_answer = answering_ && !leaving_ && !endless_ && websocket_ == nullptr;
  if (!owes_an_answer) return drop();
  keep_alive_ = false;
  retiring_ = true;
}

void ServerConnection::expect_request() {
  set_deadline(limits_.request_timeout);
  advance(reader_.put({}));
}

void ServerConnection::set_deadline(std::chrono::seconds from_now) {
  deadline_ = Clock::now() + from_now;
  if (deadline_ < timer_set_to_) wait_for_deadline();
}

void ServerConnection::wait_for_deadline() {
  timer_set_to_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](auto error) {
    const auto self = weak.lock();
    if (error || !self || self->closed_) return;
    self->timer_set_to_ = Clock::time_point::max();
    if (self->deadline_ == Clock::time_point::max()) return;
    if (Clock::now() < self->deadline_) return self->wait_for_deadline();
    self->on_deadline();
  });
}

/// Only a client that owes the rest of a request gets an answer; no other client waits for one.
void ServerConnection::on_deadline() {
  const bool awaits_request = started_ && !answering_ && !leaving_;
  if (!awaits_request || !reader_.in_request()) return drop();
  refuse(408, "the request was not complete in time");
}

void ServerConnection::refuse(int status, const std::string& why) {
  answering_ = true;
  keep_alive_ = false;
  head_only_ = false;
  answer(plain_problem(status, why));
}

void ServerConnection::read() {
  if (reading_ || input_ended_ || (answering_ && reader_.kept() >= kMostAhead)) return;
  reading_ = true;
  stream_->async_read_some(asio::buffer(input_),
                           [self = shared_from_this()](const auto& error, size_t n) {
                             self->reading_ = false;
                             if (self->closed_ || self->leaving_) return;
                             if (error) return self->on_input_end();
                             self->on_input({self->input_.data(), n});
                           });
}

void ServerConnection::on_input(std::string_view bytes) {
  if (!answering_) return advance(reader_.put(bytes));
  reader_.keep(bytes);
  count_waiting_bytes(reader_.kept());
  if (waiting_bytes_ && *waiting_bytes_ > limits_.waiting_bytes) return drop();
  read();
}

void ServerConnection::count_waiting_bytes(size_t now) {
  if (!waiting_bytes_) return;
  *waiting_bytes_ += now - counted_;
  counted_ = now;
}

/// A client that closes only its output still reads, so it gets its answer. A stream might never
/// end, so there the end of the client's output counts as a disconnect.
void ServerConnection::on_input_end() {
  input_ended_ = true;
  if (!answering_ || body_ != nullptr) drop();
}

void ServerConnection::advance(RequestReader::Progress progress) {
  count_waiting_bytes(reader_.kept());
  switch (progress) {
    case RequestReader::Progress::kDone:
      return handle(reader_.take());
    case RequestReader::Progress::kFault:
      return refuse(reader_.fault().status, reader_.fault().what);
    case RequestReader::Progress::kMore:
      if (input_ended_) return drop();
      if (waiting_bytes_ && *waiting_bytes_ > limits_.waiting_bytes) {
        return refuse(503, "the server has too many unfinished requests; try again later");
      }
      if (is_refused_at_the_gate()) return;
      if (reader_.wants_continue()) tell_to_go_on();
      return read();
  }
}

/// Whether the gate refused the request whose head has just arrived. Its answer is then being sent.
bool ServerConnection::is_refused_at_the_gate() {
  if (!callbacks_->gate) return false;
  std::optional<Request> head = reader_.take_head();
  if (!head) return false;
  head->peer = peer_;
  std::optional<Response> refusal;
  const auto thrown = thrown_by([&] { refusal = callbacks_->gate(*head); });
  if (thrown) {
    base::log_error("the check of a request's head failed: " + *thrown);
    refusal = plain_problem(500, "the server failed; its log says why");
  }
  if (!refusal) return false;
  answering_ = true;
  keep_alive_ = false;
  head_only_ = false;
  answer(*std::move(refusal));
  return true;
}

/// The rest of the request, and so the answer, may arrive before these bytes are written.
void ServerConnection::tell_to_go_on() {
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  telling_to_go_on_ = true;
  stream_->async_write_some({asio::buffer(kGoOn)},
                            [self = shared_from_this()](const auto& error, size_t) {
                              if (self->closed_) return;
                              if (error) return self->drop();
                              self->telling_to_go_on_ = false;
                              if (self->after_write_ != nullptr) self->write_rest();
                            });
}

void ServerConnection::handle(ReadRequest read_request) {
  answering_ = true;
  deadline_ = Clock::time_point::max();
  keep_alive_ = read_request.keep_alive;
  head_only_ = read_request.head_only;
  may_chunk_ = read_request.may_chunk;
  read_request.request.peer = peer_;
  // Bytes after a request to upgrade belong to the WebSocket.
  if (wants_websocket(read_request.request) && !reading_) {
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
    answer->give(plain_problem(500, "the server failed; its log says why"));
  }
}

void ServerConnection::answer(Response response) {
  if (closed_) return;
  if (response.websocket && upgrade_) return become_websocket(std::move(response));
  if (std::exchange(upgrade_, std::nullopt)) read();
  if (response.websocket) {
    Headers headers = std::move(response.headers);
    response = plain_problem(426, "this request must ask for a WebSocket, version 13");
    response.headers = {{"upgrade", "websocket"}, {"sec-websocket-version", "13"}};
    response.headers.merge(headers);
  }
  if (response.stream != nullptr) {
    answer_stream(std::move(response));
  } else {
    answer_whole(std::move(response));
  }
}

void ServerConnection::answer_whole(Response response) {
  out_head_ = response_head(response, Framing::kLength, keep_alive_);
  const bool bodiless = head_only_ || !may_have_body(response.status);
  out_body_ = bodiless ? std::string() : std::move(response.body);
  out_ = {asio::buffer(out_head_), asio::buffer(out_body_.bytes())};
  write(&ServerConnection::finish);
}

void ServerConnection::answer_stream(Response response) {
  endless_ = response.content_type.ends_with("event-stream");  // text/, or another form of one
  if (endless_ && retiring_) return drop();
  if (input_ended_) return drop();
  const auto length = given_length(response.headers);
  framing_ = length ? Framing::kGiven : may_chunk_ ? Framing::kChunked : Framing::kClose;
  owed_ = length.value_or(0);
  if (framing_ == Framing::kClose) keep_alive_ = false;
  out_head_ = response_head(response, framing_, keep_alive_);
  out_ = {asio::buffer(out_head_)};
  if (!head_only_) body_ = std::move(response.stream);
  write(head_only_ ? &ServerConnection::finish : &ServerConnection::pull);
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

void ServerConnection::pull() {
  deadline_ = Clock::time_point::max();
  const auto body = body_;  // outlives its own pull(), whatever that leads to
  const auto thrown = thrown_by([&] {
    body->pull([weak = weak_from_this(), pull = ++pull_](BodyPiece piece) {
      const auto self = weak.lock();
      if (self && !self->closed_) self->on_piece(pull, std::move(piece));
    });
  });
  if (thrown) {
    // The head has been sent, so only a broken connection shows that the body is incomplete.
    base::log_error("a streamed answer failed: " + *thrown);
    drop();
  }
}

void ServerConnection::on_piece(uint64_t pull, BodyPiece piece) {
  if (pull != pull_) return;
  ++pull_;
  const bool chunked = framing_ == Framing::kChunked;
  if (framing_ == Framing::kGiven) {
    // The head has been sent, so only a broken connection shows that the length was wrong.
    const uint64_t size = piece.is_end() ? 0 : piece.bytes().size();
    if (size > owed_ || (piece.is_end() && owed_ > 0)) return drop();
    owed_ -= size;
  }
  if (piece.is_end()) {
    out_head_ = chunked ? "0\r\n\r\n" : "";
    out_ = {asio::buffer(out_head_)};
    return write(&ServerConnection::finish);
  }
  // An empty chunk would end the body.
  const bool framed = chunked && !piece.bytes().empty();
  out_head_ = framed ? chunk_head(piece.bytes().size()) : "";
  out_body_ = std::move(piece);
  out_ = {asio::buffer(out_head_), asio::buffer(out_body_.bytes()),
          asio::buffer(framed ? kChunkEnd : std::string_view())};
  write(&ServerConnection::pull);
}

void ServerConnection::write(Next next) {
  after_write_ = next;
  if (!telling_to_go_on_) write_rest();
}

/// Each accepted part restarts the time limit.
void ServerConnection::write_rest() {
  set_deadline(limits_.write_timeout);
  stream_->async_write_some(out_, [self = shared_from_this()](const auto& error, size_t count) {
    if (self->closed_) return;
    if (error) return self->drop();
    if (!take_off(self->out_, count)) return self->write_rest();
    ((*self).*std::exchange(self->after_write_, nullptr))();
  });
}

void ServerConnection::finish() {
  body_.reset();
  endless_ = false;
  out_body_ = std::nullopt;
  if (!keep_alive_ || input_ended_) return leave();
  answering_ = false;
  expect_request();
}

/// The client may still be sending, and must be able to read its answer.
void ServerConnection::leave() {
  if (retiring_) return drop();
  leaving_ = true;
  set_deadline(kHangUpTimeout);
  stream_->async_finish([self = shared_from_this()](const auto&, size_t) { self->drop(); });
}

}  // namespace muster::http
