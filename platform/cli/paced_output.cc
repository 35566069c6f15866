#include "cli/paced_output.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace muster::cli {

namespace {

constexpr size_t kEnough = 256 << 10;

/// base::write_all() that also waits where a neighbour has made the shared descriptor non-blocking.
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
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}

base::Result<void> PacedOutput::commit() {
  if (buffer_.empty()) return {};
  if (buffer_.size() >= kEnough) return flush();
  if (timer_set_) return {};
  const Clock::duration waited = Clock::now() - last_flush_;
  // Without a timer (no descriptors left) nothing may wait.
  if (waited >= patience_ || !timer_) return flush();
  set_timer(patience_ - waited);
  return {};
}

base::Result<void> PacedOutput::flush() {
  if (timer_set_) set_timer({});
  const auto written = write_patiently(fd_, buffer_);
  buffer_.clear();
  last_flush_ = Clock::now();
  return written;
}

/// A delay of zero takes the timer back, also where it has fired already.
void PacedOutput::set_timer(Clock::duration delay) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(delay);
  itimerspec when{};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = std::chrono::nanoseconds(delay - seconds).count();
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
  timer_set_ = delay != Clock::duration::zero();
}

}  // namespace muster::cli
