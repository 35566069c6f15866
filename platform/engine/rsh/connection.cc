#include "engine/rsh/connection.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// A handshake takes about 500 bytes.
constexpr size_t kMostBeforeKey = 8 << 10;
constexpr size_t kPieceOfSocket = 64 << 10;

}  // namespace

RshConnection::Connection(End end, base::UniqueFd socket, const Key& key)
    : socket_(std::move(socket)), channel_(end, key), greets_(end == End::kNear) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (end == End::kNear) return;
  unsent_.add(kGreeting);
  write_some();
}

pollfd RshConnection::interest() const {
  const short wanted = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  return {.fd = lost_ ? -1 : socket_.get(), .events = wanted, .revents = 0};
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
  const short wanted = waiting_.empty() ? 0 : POLLOUT;
  return {.fd = fd_.get(), .events = wanted, .revents = 0};
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
