#include "engine/rsh/connection.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/bytes.h"

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

// --- frames

namespace {

constexpr size_t kNumber = 4;

std::string number(uint32_t value) {
  std::string bytes;
  base::append_little_endian(bytes, value, kNumber);
  return bytes;
}

/// REQUIRES: at least kNumber bytes.
uint32_t number_at(std::string_view bytes, size_t at) {
  return static_cast<uint32_t>(base::little_endian<kNumber>(bytes.substr(at).data()));
}

std::string byte(Stream stream) {
  return {static_cast<char>(stream)};
}

struct Encoder {
  using TypeAndPayload = std::pair<char, std::string>;
  TypeAndPayload operator()(const Command& frame) const { return {'c', frame.line}; }
  TypeAndPayload operator()(const SendSignal& frame) const {
    return {'s', number(static_cast<uint32_t>(frame.number))};
  }
  TypeAndPayload operator()(const Refusal& frame) const { return {'r', frame.sentence}; }
  TypeAndPayload operator()(const Ended& frame) const {
    return {'x', number(static_cast<uint32_t>(frame.code)) +
                     number(static_cast<uint32_t>(frame.signal))};
  }
  TypeAndPayload operator()(const Data& frame) const {
    return {'d', byte(frame.stream) + frame.bytes};
  }
  TypeAndPayload operator()(const StreamEnd& frame) const { return {'e', byte(frame.stream)}; }
  TypeAndPayload operator()(const Grant& frame) const {
    return {'g', byte(frame.stream) + number(frame.bytes)};
  }
  TypeAndPayload operator()(const HangUp& frame) const { return {'h', byte(frame.stream)}; }
};

Error broken(const std::string& what) {
  return {.code = ErrorCode::kInvalid, .what = what};
}

std::optional<Stream> stream_at(std::string_view body) {
  if (body.empty() || static_cast<uint8_t>(body[0]) > 2) return std::nullopt;
  return static_cast<Stream>(body[0]);
}

std::optional<Frame> decode_of_stream(char kind, std::string_view body) {
  const auto stream = stream_at(body);
  if (!stream) return std::nullopt;
  const std::string_view rest = body.substr(1);
  if (kind == 'd') return Data{*stream, std::string(rest)};
  if (kind == 'g' && rest.size() == 4) return Grant{*stream, number_at(rest, 0)};
  if (!rest.empty()) return std::nullopt;
  if (kind == 'e') return StreamEnd{*stream};
  if (kind == 'h') return HangUp{*stream};
  return std::nullopt;
}

std::optional<Frame> decode(char kind, std::string_view body) {
  constexpr uint32_t kLargestNumber = 255;
  switch (kind) {
    case 'c':
      return Command{std::string(body)};
    case 'r':
      return Refusal{std::string(body)};
    case 's': {
      if (body.size() != 4 || number_at(body, 0) > kLargestNumber) return std::nullopt;
      return SendSignal{static_cast<int>(number_at(body, 0))};
    }
    case 'x': {
      if (body.size() != 8) return std::nullopt;
      const uint32_t code = number_at(body, 0);
      const uint32_t signal = number_at(body, 4);
      if (code > kLargestNumber || signal > kLargestNumber) return std::nullopt;
      return Ended{static_cast<int>(code), static_cast<int>(signal)};
    }
    default:
      return decode_of_stream(kind, body);
  }
}

}  // namespace

std::string encode(const Frame& frame) {
  const auto [kind, body] = std::visit(Encoder{}, frame);
  return base::encode_frame(kind, body);
}

Result<std::optional<Frame>> FrameReader::next() {
  MUSTER_TRY(const auto framed, frames_.front());
  if (!framed) return std::optional<Frame>();
  auto frame = decode(framed->tag, framed->bytes);
  if (!frame) return broken("sent an unknown frame");
  frames_.pop(*framed);
  return frame;
}

// --- the connection

namespace {

// A handshake takes about 500 bytes.
constexpr size_t kMostBeforeKey = 8 << 10;
constexpr size_t kPieceOfSocket = 64 << 10;

}  // namespace

RshConnection::RshConnection(End end, base::UniqueFd socket, const Key& key)
    : socket_(std::move(socket)), channel_(end, key), greets_(end == End::kNear) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (end == End::kNear) return;
  unsent_.add(kGreeting);
  write_some();
}

pollfd RshConnection::interest() const {
  const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  return {.fd = lost_ ? -1 : socket_.get(), .events = events, .revents = 0};
}

Result<void> RshConnection::turn(short events) {
  Result<void> result;
  if (events & (POLLIN | POLLHUP | POLLERR)) read_some(result);
  if (!greets_) unsent_.add(channel_.take_encrypted());
  write_some();
  return result;
}

void RshConnection::read_some(Result<void>& result) {
  std::array<char, kPieceOfSocket> piece;
  // The end of the handshake and the first frames may arrive together.
  const size_t most = established() ? piece.size() : kMostBeforeKey - before_key_;
  const ssize_t count = ::recv(socket_.get(), piece.data(), most, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    lost_ = true;
    return;
  }
  result = take({piece.data(), static_cast<size_t>(count)});
}

Result<void> RshConnection::take(std::string_view bytes) {
  if (!established()) before_key_ += bytes.size();
  if (greets_) {
    MUSTER_TRY(bytes, without_greeting(bytes));
  }
  MUSTER_CHECK(channel_.receive(bytes));
  frames_.add(channel_.take_plain());
  if (!established() && before_key_ == kMostBeforeKey) {
    return Error{.code = ErrorCode::kRefused, .what = "has another key"};
  }
  return {};
}

Result<std::string_view> RshConnection::without_greeting(std::string_view bytes) {
  const size_t missing = std::min(kGreeting.size() - greeting_.size(), bytes.size());
  greeting_ += bytes.substr(0, missing);
  if (!kGreeting.starts_with(greeting_)) {
    return Error{.code = ErrorCode::kUnavailable, .what = "is another program"};
  }
  greets_ = greeting_.size() < kGreeting.size();
  return bytes.substr(missing);
}

void RshConnection::write_some() {
  if (unsent_.empty() || lost_) return;
  const ssize_t count = ::send(socket_.get(), unsent_.front().data(), unsent_.size(), MSG_NOSIGNAL);
  if (count < 0) {
    // Bytes that the other end sent before it closed may still be unread: recv() shows that.
    if (errno != EAGAIN && errno != EINTR) unsent_.clear();
    return;
  }
  unsent_.take(static_cast<size_t>(count));
}

void RshConnection::send(const Frame& frame) {
  channel_.send(encode(frame));
  unsent_.add(channel_.take_encrypted());
  write_some();
}

namespace {

/// Grants are sent in steps of this size, so that they are few.
constexpr size_t kGrantAtOnce = kWindow / 8;

/// The size of a write that does not block: poll() guarantees space for PIPE_BUF bytes in a pipe.
ssize_t write_without_waiting(int fd, std::string_view bytes) {
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
}

bool has_room(int fd) {
  pollfd watched{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&watched, 1, 0) == 1 && watched.revents == POLLOUT;
}

}  // namespace

pollfd Source::interest() const {
  // Without credit nothing is read, not even the end of the input.
  return {.fd = credit_ > 0 ? fd_.get() : -1, .events = POLLIN, .revents = 0};
}

void Source::turn(short events, RshConnection& connection) {
  if (events == 0 || !fd_) return;
  std::array<char, kPiece> piece;
  const ssize_t count = ::read(fd_.get(), piece.data(), std::min(piece.size(), credit_));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) {
    credit_ -= static_cast<size_t>(count);
    connection.send(Data{stream_, std::string(piece.data(), static_cast<size_t>(count))});
    return;
  }
  fd_.reset();
  connection.send(StreamEnd{stream_});
}

pollfd Sink::interest() const {
  // With no events requested, poll() still reports a pipe without a reader.
  const short events = waiting_.empty() ? 0 : POLLOUT;
  return {.fd = fd_.get(), .events = events, .revents = 0};
}

base::Result<void> Sink::take(std::string_view bytes) {
  if (!fd_) return {};
  if (waiting_.size() + not_granted_ + bytes.size() > kWindow) {
    return base::Error{.code = base::ErrorCode::kInvalid, .what = "sent more than allowed"};
  }
  waiting_.add(bytes);
  return {};
}

void Sink::end() {
  end_comes_ = true;
  if (waiting_.empty()) fd_.reset();
}

void Sink::turn(short events, RshConnection& connection) {
  if (events == 0 || !fd_) return;
  const size_t before = waiting_.size();
  bool gone = (events & (POLLERR | POLLNVAL)) != 0 || events == POLLHUP;
  if (!gone) gone = !write_some();
  not_granted_ += before - waiting_.size();
  if (gone) {
    waiting_.clear();
    fd_.reset();
    if (!end_comes_) connection.send(HangUp{stream_});
    return;
  }
  if (not_granted_ >= kGrantAtOnce && !end_comes_) {
    connection.send(Grant{stream_, static_cast<uint32_t>(std::exchange(not_granted_, 0))});
  }
  if (end_comes_ && waiting_.empty()) fd_.reset();
}

/// False: the descriptor has no reader any more.
bool Sink::write_some() {
  do {
    const ssize_t count = write_without_waiting(fd_.get(), waiting_.front());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    waiting_.take(static_cast<size_t>(count));
  } while (!waiting_.empty() && has_room(fd_.get()));
  return true;
}

}  // namespace muster::engine::rsh
