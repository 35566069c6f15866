#include "cli/logs/log_stream.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <string_view>

#include "words/sentence.h"

namespace muster::cli::logs {

LogCursor::Count& LogCursor::count_of(const job::LogRecord& record) {
  const bool again = last_ != nullptr && last_->first == std::tie(record.attempt, record.task,
                                                                  record.rank, record.stream);
  if (!again) {
    last_ = &*counts_.try_emplace({record.attempt, record.task, record.rank, record.stream}).first;
  }
  return last_->second;
}

const job::LogRecord* LogCursor::unseen(const job::LogRecord& record) {
  Count& count = count_of(record);
  if (count.again == 0) {
    count.seen += job::printed_size(record);
    return &record;
  }
  rest_ = record;
  if (!job::drop_seen(rest_, count.again)) return nullptr;
  count.seen += job::printed_size(rest_);
  return &rest_;
}

// What was seen before a restart may reach beyond the first place after it.
void LogCursor::reach(const std::string& place) {
  place_ = place;
  last_ = nullptr;
  std::erase_if(counts_, [](const auto& entry) { return entry.second.again == 0; });
  for (auto& [source, count] : counts_) count.seen = count.again;
}

void LogCursor::restart() {
  for (auto& [source, count] : counts_) count.again = count.seen;
}

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

namespace {

constexpr time_t kFirstLook = 2;  // seconds
constexpr time_t kBetweenLooks = 5;

}  // namespace

WaitingWord::WaitingWord() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  itimerspec when{};
  when.it_value.tv_sec = kFirstLook;
  when.it_interval.tv_sec = kBetweenLooks;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void WaitingWord::look(const Connection& connection, const std::string& name) {
  uint64_t count = 0;
  if (!timer_ || ::read(timer_.get(), &count, sizeof count) != sizeof count) return;
  const auto job = connection.second_client()->get(name);
  // A server that is gone is waited for elsewhere.
  if (!job) return;
  const std::string word = waiting_word(*job);
  if (word.empty()) return done();
  if (word == told_) return;
  told_ = word;
  std::cerr << "muster: " + word << std::endl;
}

std::string waiting_word(const job::Job& job) {
  if (job.phase != job::Phase::kQueued || job::is_empty(job.reason)) return {};
  return "job '" + job.spec.name + "'" + words::after_colon(job.reason);
}

}  // namespace muster::cli::logs
