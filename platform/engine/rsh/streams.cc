#include "engine/rsh/streams.h"

#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muster::engine::rsh {

namespace {

constexpr size_t kGrantAtOnce = kWindow / 8;

/// As much as is taken without waiting: poll() says of a pipe that PIPE_BUF bytes have room.
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
  // Not even its end is heard of before there is room for what stands in front of that.
  return {.fd = credit_ > 0 ? fd_.get() : -1, .events = POLLIN, .revents = 0};
}

void Source::turn(short events, Connection& connection) {
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
  // Asked for nothing, a pipe still says that nobody reads it.
  const short wanted = waiting_.empty() ? 0 : POLLOUT;
  return {.fd = fd_.get(), .events = wanted, .revents = 0};
}

base::Result<void> Sink::take(std::string_view bytes) {
  if (!fd_) return {};
  if (waiting_.size() + not_granted_ + bytes.size() > kWindow) {
    return base::Error{.code = base::ErrorCode::kInvalid, .what = "sent more than it may"};
  }
  waiting_.add(bytes);
  return {};
}

void Sink::end() {
  end_comes_ = true;
  if (waiting_.empty()) fd_.reset();
}

void Sink::turn(short events, Connection& connection) {
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

/// False: nobody reads it any more.
bool Sink::write_some() {
  do {
    const ssize_t count = write_without_waiting(fd_.get(), waiting_.front());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    waiting_.take(static_cast<size_t>(count));
  } while (!waiting_.empty() && has_room(fd_.get()));
  return true;
}

}  // namespace muster::engine::rsh
