#include "http/answer_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace muster::http {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kChunkEnd = "\r\n";

/// The content-length of a stream, if its headers contain a valid one.
std::optional<uint64_t> given_length(const Headers& headers) {
  const auto found = headers.find("content-length");
  uint64_t length = 0;
  if (found == headers.end()) return std::nullopt;
  const char* const end = found->second.data() + found->second.size();
  const auto read = std::from_chars(found->second.data(), end, length);
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

}  // namespace

void Deadline::start(std::weak_ptr<void> owner, std::function<void()> on_expiry) {
  owner_ = std::move(owner);
  on_expiry_ = std::move(on_expiry);
}

void Deadline::set(std::chrono::seconds from_now) {
  at_ = Clock::now() + from_now;
  if (at_ < timer_set_to_) wait();
}

void Deadline::wait() {
  timer_set_to_ = at_;
  timer_.expires_at(at_);
  timer_.async_wait([this, owner = owner_](auto error) {
    // A timer that is cancelled because its owner is destroyed gets here, too.
    const auto alive = owner.lock();
    if (error || !alive || stopped_) return;
    timer_set_to_ = Clock::time_point::max();
    if (at_ == Clock::time_point::max()) return;
    if (Clock::now() < at_) return wait();
    on_expiry_();
  });
}

void Deadline::stop() {
  stopped_ = true;
  timer_.cancel();
}

void SharedCount::set(size_t part) {
  if (sum_ == nullptr) return;
  *sum_ += part - part_;
  part_ = part;
}

Framing framing_of(const Response& response, const AnswerRules& rules) {
  if (response.stream == nullptr) return Framing::kLength;
  if (given_length(response.headers)) return Framing::kGiven;
  return rules.may_chunk ? Framing::kChunked : Framing::kClose;
}

void AnswerWriter::start(std::weak_ptr<void> owner, ByteStream& stream, Handlers handlers) {
  owner_ = std::move(owner);
  stream_ = &stream;
  handlers_ = std::move(handlers);
}

void AnswerWriter::drop() {
  dropped_ = true;
  body_.reset();
}

void AnswerWriter::write_continue() {
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  writing_continue_ = true;
  stream_->async_write_some({asio::buffer(kGoOn)}, [self = self()](const auto& error, size_t) {
    if (self->dropped_) return;
    if (error) return self->handlers_.on_failure();
    self->writing_continue_ = false;
    if (std::exchange(self->waits_for_continue_, false)) self->write_rest();
  });
}

void AnswerWriter::write(Response response, Framing framing, const AnswerRules& rules) {
  framing_ = framing;
  head_ = response_head(response, framing, rules.keep_alive);
  if (response.stream == nullptr) {
    const bool bodiless = rules.head_only || !may_have_body(response.status);
    piece_ = bodiless ? std::string() : std::move(response.body);
    rest_ = {asio::buffer(head_), asio::buffer(piece_.bytes())};
    return write_out(false);
  }
  endless_ = is_event_stream(response);
  owed_ = given_length(response.headers).value_or(0);
  rest_ = {asio::buffer(head_)};
  if (!rules.head_only) body_ = std::move(response.stream);
  write_out(!rules.head_only);
}

void AnswerWriter::pull() {
  handlers_.on_pull();
  const auto body = body_;  // outlives its own pull(), which may end the connection
  const auto thrown = thrown_by([&] {
    body->pull([weak = std::weak_ptr<AnswerWriter>(self()), pull = ++pull_](BodyPiece piece) {
      const auto self = weak.lock();
      if (self && !self->dropped_) self->put(pull, std::move(piece));
    });
  });
  if (thrown) {
    // The head has been sent, so only a broken connection shows that the body is incomplete.
    base::log_error("a streamed answer failed: " + *thrown);
    handlers_.on_failure();
  }
}

void AnswerWriter::put(uint64_t pull, BodyPiece piece) {
  if (pull != pull_) return;
  ++pull_;
  const bool chunked = framing_ == Framing::kChunked;
  if (framing_ == Framing::kGiven) {
    // The head has been sent, so only a broken connection shows that the length was wrong.
    const uint64_t size = piece.is_end() ? 0 : piece.bytes().size();
    if (size > owed_ || (piece.is_end() && owed_ > 0)) return handlers_.on_failure();
    owed_ -= size;
  }
  if (piece.is_end()) {
    head_ = chunked ? "0\r\n\r\n" : "";
    rest_ = {asio::buffer(head_)};
    return write_out(false);
  }
  // An empty chunk would end the body.
  const bool framed = chunked && !piece.bytes().empty();
  head_ = framed ? chunk_head(piece.bytes().size()) : "";
  piece_ = std::move(piece);
  rest_ = {asio::buffer(head_), asio::buffer(piece_.bytes()),
           asio::buffer(framed ? kChunkEnd : std::string_view())};
  write_out(true);
}

void AnswerWriter::write_out(bool pulls_next) {
  pulls_next_ = pulls_next;
  waits_for_continue_ = writing_continue_;
  if (!waits_for_continue_) return write_rest();
  // The client may accept nothing at all.
  handlers_.on_write();
}

/// Each part that the client accepts restarts its time limit.
void AnswerWriter::write_rest() {
  handlers_.on_write();
  stream_->async_write_some(rest_, [self = self()](const auto& error, size_t count) {
    if (self->dropped_) return;
    if (error) return self->handlers_.on_failure();
    if (!take_off(self->rest_, count)) return self->write_rest();
    if (self->pulls_next_) return self->pull();
    self->finish();
  });
}

void AnswerWriter::finish() {
  body_.reset();
  endless_ = false;
  piece_ = std::nullopt;
  handlers_.on_done();
}

}  // namespace muster::http
