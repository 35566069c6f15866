#include "http/connection.h"

#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/log.h"

namespace muster::http {

namespace asio = boost::asio;

namespace {

/// How much a client may send ahead of the answers to it before we stop reading.
constexpr size_t kMostAhead = 64 << 10;

std::string chunk_head(size_t size) {
  std::array<char, 20> text{};
  const int length = std::snprintf(text.data(), text.size(), "%zx\r\n", size);
  return {text.data(), static_cast<size_t>(length)};
}

/// Runs code of somebody else's; what it threw, if it threw, in words.
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

/// The one answer to one request, shared by all copies of its Respond. A handler that loses them
/// all without a word would leave the client waiting for ever; it gets a 500 instead.
class Connection::Answer {
 public:
  explicit Answer(std::weak_ptr<Connection> connection) : connection_(std::move(connection)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() { give(plain_problem(500, "the server had no answer to this request")); }

  /// The first call counts.
  void give(Response response) {
    if (std::exchange(given_, true)) return;
    if (const auto connection = connection_.lock()) connection->answer(std::move(response));
  }

 private:
  std::weak_ptr<Connection> connection_;
  bool given_ = false;
};

Connection::Connection(base::EventLoop& loop, std::shared_ptr<const Handler> handler,
                       const Limits& limits, uid_t peer)
    : handler_(std::move(handler)),
      limits_(limits),
      peer_(peer),
      socket_(loop.context()),
      deadline_(loop.context()),
      reader_(limits) {}

void Connection::start(base::UniqueFd socket, OnEnd on_end) {
  on_end_ = std::move(on_end);
  boost::system::error_code error;
  socket_.assign(asio::local::stream_protocol(), socket.get(), error);
  if (error) return drop();
  socket.release();
  expect_request();
}

void Connection::drop() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  deadline_.cancel();
  stream_.reset();
  if (const OnEnd on_end = std::exchange(on_end_, nullptr)) on_end(shared_from_this());
}

void Connection::expect_request() {
  deadline_.expires_after(limits_.request_timeout);
  deadline_.async_wait([weak = weak_from_this()](auto error) {
    const auto self = weak.lock();
    // A wait that is over cannot be cancelled any more: hence the look at answering_.
    if (!error && self && !self->closed_ && !self->answering_) self->on_deadline();
  });
  advance(reader_.put({}));
}

void Connection::on_deadline() {
  if (!reader_.in_request()) return drop();
  refuse(408, "the request did not come in whole in time");
}

void Connection::refuse(int status, const std::string& why) {
  answering_ = true;
  keep_alive_ = false;
  head_only_ = false;
  answer(plain_problem(status, why));
}

void Connection::read() {
  if (reading_ || input_ended_ || (answering_ && reader_.kept() >= kMostAhead)) return;
  reading_ = true;
  socket_.async_read_some(asio::buffer(input_), [self = shared_from_this()](auto error, size_t n) {
    self->reading_ = false;
    if (self->closed_) return;
    if (error) return self->on_input_end();
    self->on_input({self->input_.data(), n});
  });
}

void Connection::on_input(std::string_view bytes) {
  if (!answering_) return advance(reader_.put(bytes));
  reader_.keep(bytes);
  read();
}

/// A client that closes only its sending half still reads: it gets the answer it waits for. But a
/// stream might never end, so there the end of its input counts as its leaving.
void Connection::on_input_end() {
  input_ended_ = true;
  if (!answering_ || stream_ != nullptr) drop();
}

void Connection::advance(RequestReader::Progress progress) {
  switch (progress) {
    case RequestReader::Progress::kDone:
      return handle(reader_.take());
    case RequestReader::Progress::kFault:
      return refuse(reader_.fault().status, reader_.fault().what);
    case RequestReader::Progress::kMore:
      if (input_ended_) return drop();
      if (reader_.wants_continue()) {
        // Nothing else is on its way to the client now, so these few bytes fit.
        constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
        ::send(socket_.native_handle(), kGoOn.data(), kGoOn.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      return read();
  }
}

void Connection::handle(ReadRequest read_request) {
  answering_ = true;
  deadline_.cancel();
  keep_alive_ = read_request.keep_alive;
  head_only_ = read_request.head_only;
  may_chunk_ = read_request.may_chunk;
  read_request.request.peer = peer_;
  read();

  const auto answer = std::make_shared<Answer>(weak_from_this());
  const auto thrown = thrown_by([&] {
    (*handler_)(std::move(read_request.request),
                [answer](Response response) { answer->give(std::move(response)); });
  });
  if (thrown) {
    base::log_error("a request's handler failed: " + *thrown);
    answer->give(plain_problem(500, "the server failed; its log says why"));
  }
}

void Connection::answer(Response response) {
  if (closed_) return;
  if (response.stream != nullptr) {
    answer_stream(std::move(response));
  } else {
    answer_whole(std::move(response));
  }
}

void Connection::answer_whole(Response response) {
  out_head_ = response_head(response, Framing::kLength, keep_alive_);
  const bool bodiless = head_only_ || !may_have_body(response.status);
  out_body_ = bodiless ? std::string() : std::move(response.body);
  write(&Connection::finish);
}

void Connection::answer_stream(Response response) {
  if (input_ended_) return drop();
  framing_ = may_chunk_ ? Framing::kChunked : Framing::kClose;
  if (!may_chunk_) keep_alive_ = false;
  out_head_ = response_head(response, framing_, keep_alive_);
  out_body_.clear();
  if (!head_only_) stream_ = std::move(response.stream);
  write(head_only_ ? &Connection::finish : &Connection::pull);
}

void Connection::pull() {
  const auto stream = stream_;  // outlives its own pull(), whatever that leads to
  const auto thrown = thrown_by([&] {
    stream->pull([weak = weak_from_this(), pull = ++pull_](std::optional<std::string> piece) {
      const auto self = weak.lock();
      if (self && !self->closed_) self->on_piece(pull, std::move(piece));
    });
  });
  if (thrown) {
    // The head is sent: only a broken connection can still say that something is missing.
    base::log_error("a streamed answer failed: " + *thrown);
    drop();
  }
}

void Connection::on_piece(uint64_t pull, std::optional<std::string> piece) {
  if (pull != pull_) return;
  ++pull_;
  const bool chunked = framing_ == Framing::kChunked;
  if (!piece) {
    out_head_ = chunked ? "0\r\n\r\n" : "";
    out_body_.clear();
    return write(&Connection::finish);
  }
  // An empty chunk would end the body.
  out_head_ = chunked && !piece->empty() ? chunk_head(piece->size()) : "";
  out_body_ = *std::move(piece);
  if (!out_head_.empty()) out_body_ += "\r\n";
  write(&Connection::pull);
}

void Connection::write(Next next) {
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(out_head_), asio::buffer(out_body_)};
  asio::async_write(socket_, buffers, [self = shared_from_this(), next](auto error, size_t) {
    if (self->closed_) return;
    if (error) return self->drop();
    ((*self).*next)();
  });
}

void Connection::finish() {
  stream_.reset();
  out_body_ = {};
  if (!keep_alive_ || input_ended_) return drop();
  answering_ = false;
  expect_request();
}

}  // namespace muster::http
