#include "cli/logs/paced_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace muster::cli::logs {

namespace {

/// base::write_all() that also waits if another process has made the shared descriptor
/// non-blocking.
base::Result<void> write_patiently(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return base::system_error("cannot write the logs", errno);
    }
  }
  return {};
}

}  // namespace

PacedOutput::PacedOutput(int fd, std::chrono::milliseconds patience)
    : fd_(fd),
      patience_(patience),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      due_(::epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = timer_.get()}};
  if (::epoll_ctl(due_.get(), EPOLL_CTL_ADD, timer_.get(), &event) != 0) timer_.reset();
}

bool PacedOutput::stop_waiting() {
  if (::isatty(fd_) == 0 || !timer_) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  terminal_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  return bool{terminal_};
}

base::Result<void> PacedOutput::commit() {
  if (buffer_.empty() || awaits_room_) return {};
  if (terminal_ && buffer_.size() >= kTerminalPiece) {
    await_room(true);
    return awaits_room_ ? base::Result<void>() : flush();
  }
  if (buffer_.size() >= kEnough) return flush();
  if (timer_set_) return {};
  const Clock::duration waited = Clock::now() - last_write_;
  // Without a timer (no free descriptors), nothing may be delayed.
  if (waited >= patience_ || !timer_) return write_some(false);
  set_timer(patience_ - waited);
  return {};
}

base::Result<void> PacedOutput::write_some(bool more) {
  if (!terminal_) return flush();
  if (timer_set_) set_timer({});
  last_write_ = Clock::now();
  const ssize_t written =
      buffer_.empty() ? 0 : ::write(terminal_.get(), buffer_.data(), buffer_.size());
  if (written < 0 && errno != EAGAIN && errno != EINTR) {
    return base::system_error("cannot write the logs", errno);
  }
  if (written > 0) buffer_.erase(0, static_cast<size_t>(written));
  const bool unfinished = more || !buffer_.empty();
  await_room(unfinished);
  return awaits_room_ == unfinished ? base::Result<void>() : flush();
}

base::Result<void> PacedOutput::flush() {
  if (timer_set_) set_timer({});
  const auto written = write_patiently(fd_, buffer_);
  buffer_.clear();
  last_write_ = Clock::now();
  await_room(false);
  return written;
}

/// A delay of zero disarms the timer, even after it has fired.
void PacedOutput::set_timer(Clock::duration delay) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(delay);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = std::chrono::nanoseconds(delay - seconds).count();
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
  timer_set_ = delay != Clock::duration::zero();
}

/// The terminal leaves the set meanwhile: the end of a terminal would be reported without being
/// asked for, again and again.
void PacedOutput::await_room(bool awaits) {
  if (awaits == awaits_room_) return;
  epoll_event event{.events = EPOLLOUT, .data = {.fd = terminal_.get()}};
  const int operation = awaits ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
  if (::epoll_ctl(due_.get(), operation, terminal_.get(), &event) == 0) awaits_room_ = awaits;
}

}  // namespace muster::cli::logs
