#include "http/async_client.h"

#include <array>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "http/byte_stream.h"
#include "http/dial.h"
#include "http/head.h"
#include "http/stream_ends.h"

namespace muster::http {

namespace asio = boost::asio;

using base::Error;
using base::Result;

/// The callbacks of an exchange. A caller of one of them holds this struct, because the callback
/// may drop the exchange.
struct ExchangeHandlers {
  std::function<base::Result<std::string>()> next_piece;  ///< next piece of the request's body
  AsyncClient::Answered answered;
  std::function<void()> on_head;  ///< called once
  OnPiece on_piece;
  RawStream::Handlers raw;
  std::function<void(base::Result<Upgraded>)> upgraded;  ///< set: the request asks for an upgrade
};

/// One request on its own connection: connects, sends, reads the answer, and becomes a stream of
/// bytes if the answer is one. Each pending operation on the connection holds the exchange.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(base::EventLoop& loop, std::string name, AsyncRequest request, const AsyncLimits& limits,
           ExchangeHandlers handlers, std::shared_ptr<KeptConnections> kept);

  void begin(const AsyncPlace& place);
  /// Ends the exchange without a callback, unless it has become a stream, which the call no longer
  /// owns.
  void drop_call();
  void drop();

  void pause(bool paused);
  void write(std::string_view bytes);
  size_t waiting() const { return output_.size(); }
  void close_output();

 private:
  enum class Phase { kConnecting, kAsking, kRaw, kOver };
  using ErrorCode = boost::system::error_code;

  void use(std::unique_ptr<ByteStream> stream);
  void ask(const std::string& host);

  void has_sent();
  bool add_next_piece();

  void has_read(const ErrorCode& error, std::string_view bytes);
  void read_answer(std::string_view bytes);
  void read_raw(std::string_view bytes);
  void become_raw();
  void announce_head();
  bool hand_on(std::string_view bytes);
  void raw_ended();

  bool hands_on_body() const;
  void expect_more_of_body();
  void wait_for(std::chrono::milliseconds limit, const char* what);
  void finish(base::Result<Response> answer);
  void let_go();
  bool may_keep() const;
  base::Error named(base::Error error) const;
  base::Error broken(const std::string& what) const;

  base::EventLoop& loop_;
  std::string name_;
  AsyncRequest request_;
  AsyncLimits limits_;
  std::shared_ptr<ExchangeHandlers> handlers_;
  std::shared_ptr<KeptConnections> kept_;  ///< null: the connection is for this request only
  Phase phase_ = Phase::kConnecting;

  std::shared_ptr<void> connecting_;
  std::unique_ptr<ByteStream> stream_;
  base::EventLoop::Interest deadline_;
  QueuedOutput output_;
  PausableInput input_;
  ResponseReader reader_;
};

AsyncCall& AsyncCall::operator=(AsyncCall&& other) noexcept {
  if (this != &other) {
    const auto dropped = std::exchange(exchange_, std::move(other.exchange_));
    if (dropped != nullptr) dropped->drop_call();
  }
  return *this;
}

AsyncCall::~AsyncCall() {
  if (exchange_ != nullptr) exchange_->drop_call();
}

void AsyncCall::pause(bool paused) {
  if (exchange_ != nullptr) exchange_->pause(paused);
}

RawStream::~RawStream() {
  exchange_->drop();
}

void RawStream::write(std::string_view bytes) {
  exchange_->write(bytes);
}

size_t RawStream::waiting() const {
  return exchange_->waiting();
}

void RawStream::close_output() {
  exchange_->close_output();
}

void RawStream::pause(bool paused) {
  exchange_->pause(paused);
}

AsyncClient::AsyncClient(base::EventLoop& loop, AsyncPlace place, std::string name, KeepAlive keep)
    : loop_(loop), place_(std::move(place)), name_(std::move(name)) {
  if (keep.most == 0) return;
  kept_ = std::make_shared<KeptConnections>(loop_, keep.most, keep.longest_wait);
}

AsyncCall AsyncClient::send(AsyncRequest request, const AsyncLimits& limits, Answered answered) {
  return stream(std::move(request), limits, nullptr, std::move(answered));
}

AsyncCall AsyncClient::stream(AsyncRequest request, const AsyncLimits& limits, OnPiece on_piece,
                              Answered answered, std::function<void()> on_head) {
  auto exchange = std::make_shared<Exchange>(loop_, name_, std::move(request), limits,
                                             ExchangeHandlers{.answered = std::move(answered),
                                                              .on_head = std::move(on_head),
                                                              .on_piece = std::move(on_piece)},
                                             kept_);
  exchange->begin(place_);
  return AsyncCall(std::move(exchange));
}

AsyncCall AsyncClient::upgrade(AsyncRequest request, const AsyncLimits& limits,
                               RawStream::Handlers handlers,
                               std::function<void(base::Result<Upgraded>)> then) {
  auto exchange = std::make_shared<Exchange>(
      loop_, name_, std::move(request), limits,
      ExchangeHandlers{.raw = std::move(handlers), .upgraded = std::move(then)}, nullptr);
  exchange->begin(place_);
  return AsyncCall(std::move(exchange));
}

namespace {

constexpr int kSwitchingProtocols = 101;

/// "5 s", "200 ms"
std::string to_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return std::to_string(time.count()) + " ms";
}

/// The headers with the length or the chunked coding of the body, and `connection`.
Headers headers_to_send(const AsyncRequest& request, bool in_chunks, bool keep) {
  Headers headers = request.headers;
  if (in_chunks) {
    headers["transfer-encoding"] = "chunked";
  } else if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    headers["content-length"] = std::to_string(request.body.size());
  }
  if (!keep) headers.emplace("connection", "close");
  return headers;
}

/// A chunk with these bytes. Without bytes it is the last chunk, with no trailers behind it.
std::string chunk_of(std::string_view bytes) {
  std::array<char, 20> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  std::string chunk(size.data(), end);
  chunk += "\r\n";
  chunk += bytes;
  chunk += "\r\n";
  return chunk;
}

}  // namespace

Exchange::Exchange(base::EventLoop& loop, std::string name, AsyncRequest request,
                   const AsyncLimits& limits, ExchangeHandlers handlers,
                   std::shared_ptr<KeptConnections> kept)
    : loop_(loop),
      name_(std::move(name)),
      request_(std::move(request)),
      limits_(limits),
      handlers_(std::make_shared<ExchangeHandlers>(std::move(handlers))),
      kept_(std::move(kept)),
      reader_(request_.method == "HEAD",
              handlers_->on_piece || handlers_->upgraded
                  ? OnPiece([this](std::string_view bytes) { return hand_on(bytes); })
                  : OnPiece(),
              limits.body_bytes) {
  handlers_->next_piece = std::exchange(request_.next_piece, nullptr);
}

void Exchange::begin(const AsyncPlace& place) {
  const std::string host = host_header(place);
  wait_for(limits_.connect, "does not accept a connection");
  if (auto stream = kept_ == nullptr ? nullptr : kept_->take()) {
    use(std::move(stream));
    // Not at once: no callback is called from within the caller's call.
    return loop_.post([self = shared_from_this(), host] { self->ask(host); });
  }
  const bool any = limits_.connect.count() == 0;
  connecting_ = dial(loop_, place, name_, any ? std::chrono::hours(1) : limits_.connect,
                     [this, host](Result<std::unique_ptr<ByteStream>> stream) {
                       const auto self = shared_from_this();
                       connecting_.reset();
                       if (!stream) return finish(std::move(stream).error());
                       use(*std::move(stream));
                       ask(host);
                     });
}

void Exchange::drop_call() {
  if (phase_ != Phase::kRaw) drop();
}

void Exchange::drop() {
  if (phase_ != Phase::kOver) let_go();
}

void Exchange::use(std::unique_ptr<ByteStream> stream) {
  stream_ = std::move(stream);
  output_.start(weak_from_this(), *stream_,
                {.on_sent = [this] { has_sent(); }, .refill = [this] { return add_next_piece(); }});
  input_.start(
      weak_from_this(), *stream_,
      [this](const ErrorCode& failure, std::string_view bytes) { has_read(failure, bytes); });
}

void Exchange::ask(const std::string& host) {
  if (phase_ != Phase::kConnecting) return;
  const auto self = shared_from_this();
  if (const auto on_sending = std::exchange(request_.on_sending, nullptr)) on_sending();
  if (phase_ != Phase::kConnecting) return;
  phase_ = Phase::kAsking;
  wait_for(limits_.answer, "does not answer");
  const bool in_chunks = handlers_->next_piece != nullptr;
  output_.append(request_head(request_.method, request_.target,
                              headers_to_send(request_, in_chunks, kept_ != nullptr), host));
  output_.append(std::exchange(request_.body, {}));
  output_.go_on();
  input_.go_on();
}

void Exchange::pause(bool paused) {
  if (phase_ == Phase::kOver || !input_.set_paused(paused)) return;
  if (hands_on_body()) expect_more_of_body();
  if (!paused) loop_.post([self = shared_from_this()] { self->input_.resume(); });
}

void Exchange::write(std::string_view bytes) {
  if (phase_ == Phase::kOver || !output_.accepts()) return;
  output_.append(bytes);
  output_.go_on();
}

void Exchange::close_output() {
  output_.close();
}

// --- sending

void Exchange::has_sent() {
  if (phase_ == Phase::kAsking && !reader_.started()) wait_for(limits_.answer, "does not answer");
  const auto handlers = handlers_;
  if (phase_ == Phase::kRaw && waiting() == 0 && handlers->raw.on_drain) handlers->raw.on_drain();
}

/// False: the exchange has ended.
bool Exchange::add_next_piece() {
  const auto handlers = handlers_;
  if (phase_ != Phase::kAsking || !handlers->next_piece) return true;
  auto piece = handlers->next_piece();
  if (phase_ == Phase::kOver) return false;  // it has dropped its own request
  if (!piece) {
    finish(std::move(piece).error());
    return false;
  }
  output_.append(chunk_of(*piece));
  if (piece->empty()) handlers->next_piece = nullptr;
  return true;
}

// --- receiving

void Exchange::has_read(const ErrorCode& error, std::string_view bytes) {
  const auto self = shared_from_this();
  if (phase_ == Phase::kAsking && !error) {
    read_answer(bytes);
  } else if (phase_ == Phase::kRaw && !error) {
    read_raw(bytes);
  } else if (phase_ == Phase::kRaw) {
    raw_ended();
  } else if (phase_ == Phase::kAsking) {
    // A body may end with the connection, but not with a broken one.
    const bool ended = error == asio::error::eof && reader_.put_end().ok();
    if (phase_ != Phase::kAsking) return;
    if (ended) return finish(reader_.take());
    finish(broken(reader_.started() ? "closed the connection in the middle of its answer"
                                    : "closed the connection without an answer"));
  }
  input_.go_on();
}

void Exchange::read_answer(std::string_view bytes) {
  using Progress = ResponseReader::Progress;
  const auto progress = reader_.put(bytes);
  if (phase_ == Phase::kOver) return;
  if (!progress) return finish(named(progress.error()));
  if (phase_ == Phase::kRaw) {  // its body has begun, and is the stream
    if (*progress != Progress::kMore) raw_ended();
    return;
  }
  const bool may_become_stream = handlers_->upgraded && reader_.has_head();
  if (may_become_stream && reader_.status() == kSwitchingProtocols) {
    become_raw();
    const std::string_view rest = reader_.rest();
    if (!rest.empty()) hand_on(rest);
    return;
  }
  if (hands_on_body()) announce_head();
  if (phase_ == Phase::kOver) return;
  if (*progress != Progress::kMore) return finish(reader_.take());
  if (may_become_stream && reader_.status() < 300) return become_raw();
  if (hands_on_body()) expect_more_of_body();
}

void Exchange::read_raw(std::string_view bytes) {
  if (reader_.status() == kSwitchingProtocols) {
    hand_on(bytes);
    return;
  }
  const auto progress = reader_.put(bytes);
  if (phase_ == Phase::kOver) return;
  if (!progress || *progress != ResponseReader::Progress::kMore) raw_ended();
}

void Exchange::become_raw() {
  phase_ = Phase::kRaw;
  deadline_.reset();
  const auto handlers = handlers_;
  handlers->upgraded(Upgraded{.answer = reader_.take(),
                              .stream = std::make_unique<RawStream>(shared_from_this())});
}

void Exchange::announce_head() {
  const auto handlers = handlers_;
  const auto on_head = std::exchange(handlers->on_head, nullptr);
  if (on_head) on_head();
}

/// False: the receiver reads no further bytes.
bool Exchange::hand_on(std::string_view bytes) {
  if (phase_ == Phase::kOver) return false;
  const auto handlers = handlers_;
  if (phase_ == Phase::kAsking && !handlers->upgraded) {
    announce_head();
    return phase_ != Phase::kOver && handlers->on_piece(bytes) && phase_ != Phase::kOver;
  }
  if (phase_ == Phase::kAsking) become_raw();
  if (phase_ != Phase::kRaw) return false;
  handlers->raw.on_bytes(bytes);
  return phase_ != Phase::kOver;
}

void Exchange::raw_ended() {
  const auto handlers = handlers_;
  let_go();
  handlers->raw.on_end();
}

// --- ending

/// Whether a body is arriving that is handed on.
bool Exchange::hands_on_body() const {
  return phase_ == Phase::kAsking && handlers_->on_piece && reader_.has_head() &&
         reader_.status() < 400;
}

/// A paused body has no time limit.
void Exchange::expect_more_of_body() {
  wait_for(input_.is_paused() ? std::chrono::milliseconds(0) : limits_.silence,
           "sent nothing more");
}

void Exchange::wait_for(std::chrono::milliseconds limit, const char* what) {
  deadline_.reset();
  if (limit.count() == 0) return;
  deadline_ = loop_.after(limit, [this, limit, what] {
    finish(broken(std::string(what) + " within " + to_text(limit)));
  });
}

void Exchange::finish(Result<Response> answer) {
  const auto self = shared_from_this();
  const auto handlers = handlers_;
  let_go();
  if (!handlers->upgraded) {
    handlers->answered(std::move(answer));
  } else if (answer) {
    handlers->upgraded(Upgraded{.answer = *std::move(answer), .stream = nullptr});
  } else {
    handlers->upgraded(std::move(answer).error());
  }
}

/// The caller holds the handlers and this exchange.
void Exchange::let_go() {
  phase_ = Phase::kOver;
  deadline_.reset();
  connecting_.reset();
  const bool keep = may_keep();
  output_.drop();
  input_.drop();
  if (keep) {
    kept_->keep(std::move(stream_));
  } else if (stream_ != nullptr) {
    stream_->close();
  }
  handlers_.reset();
}

/// Whether the connection can carry another request: this one is complete both ways.
bool Exchange::may_keep() const {
  return kept_ != nullptr && stream_ != nullptr && output_.is_idle() && input_.is_idle() &&
         reader_.has_head() && reader_.is_done() && reader_.keep_alive();
}

Error Exchange::named(Error error) const {
  error.what = name_ + ": " + error.what;
  return error;
}

Error Exchange::broken(const std::string& what) const {
  return connection_error(name_, what, stream_.get());
}

}  // namespace muster::http
