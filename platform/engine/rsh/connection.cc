#include "engine/rsh/connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// A handshake takes some 500.
constexpr size_t kMostBeforeKey = 8 << 10;
constexpr size_t kPieceOfSocket = 64 << 10;

}  // namespace

Connection::Connection(End end, base::UniqueFd socket, const Key& key)
    : socket_(std::move(socket)), channel_(end, key), greets_(end == End::kNear) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (end == End::kNear) return;
  unsent_.add(kGreeting);
  write_some();
}

pollfd Connection::interest() const {
  const short wanted = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
  return {.fd = lost_ ? -1 : socket_.get(), .events = wanted, .revents = 0};
}

Result<void> Connection::turn(short events) {
  Result<void> result;
  if (events & (POLLIN | POLLHUP | POLLERR)) read_some(result);
  if (!greets_) unsent_.add(channel_.take_encrypted());
  write_some();
  return result;
}

void Connection::read_some(Result<void>& result) {
  std::array<char, kPieceOfSocket> piece;
  // The last of the handshake and the first of what follows may come at once.
  const size_t most = established() ? piece.size() : kMostBeforeKey - before_key_;
  const ssize_t count = ::recv(socket_.get(), piece.data(), most, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    lost_ = true;
    return;
  }
  result = take({piece.data(), static_cast<size_t>(count)});
}

Result<void> Connection::take(std::string_view bytes) {
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

Result<std::string_view> Connection::without_greeting(std::string_view bytes) {
  const size_t missing = std::min(kGreeting.size() - greeting_.size(), bytes.size());
  greeting_ += bytes.substr(0, missing);
  if (!kGreeting.starts_with(greeting_)) {
    return Error{.code = ErrorCode::kUnavailable, .what = "is answered for by another program"};
  }
  greets_ = greeting_.size() < kGreeting.size();
  return bytes.substr(missing);
}

void Connection::write_some() {
  if (unsent_.empty() || lost_) return;
  const ssize_t count = ::send(socket_.get(), unsent_.front().data(), unsent_.size(), MSG_NOSIGNAL);
  if (count < 0) {
    // What the other end said before it went may still be there to be read: recv() tells.
    if (errno != EAGAIN && errno != EINTR) unsent_.clear();
    return;
  }
  unsent_.take(static_cast<size_t>(count));
}

void Connection::send(const Frame& frame) {
  channel_.send(encode(frame));
  unsent_.add(channel_.take_encrypted());
  write_some();
}

}  // namespace muster::engine::rsh
