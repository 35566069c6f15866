#include "cli/connection/job_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "api/client.h"
#include "base/unique_fd.h"

namespace muster::cli {

namespace {

/// Readable once `bound` is over.
base::UniqueFd timer_of(std::chrono::milliseconds bound) {
  base::UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  // Zero would stop the timer instead.
  const auto time = std::max<std::chrono::nanoseconds>(bound, std::chrono::nanoseconds(1));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  const itimerspec spec{.it_interval = {},
                        .it_value = {.tv_sec = whole.count(), .tv_nsec = (time - whole).count()}};
  ::timerfd_settime(timer.get(), 0, &spec, nullptr);
  return timer;
}

class Watcher {
 public:
  Watcher(Connection& connection, const JobWatch& watch)
      : connection_(connection), watch_(watch), wake_fd_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (watch.bound) {
      timer_ = timer_of(*watch.bound);
      look_out_for(timer_.get());
    }
    if (watch.interrupts != nullptr) look_out_for(watch.interrupts->fd());
  }

  Result<WatchEnd> run() {
    while (true) {
      const auto read = read_stream();
      if (end_) return *end_;
      if (!read && read.error().code != base::ErrorCode::kUnavailable) return read.error();
      MUSTER_CHECK(connection_.come_back());
    }
  }

 private:
  void look_out_for(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(wake_fd_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  Result<void> read_stream() {
    std::string place;  // all jobs are told anew: one that went away meanwhile is not among them
    seen_.clear();
    const api::Client::WatchHandlers handlers{
        .on_job = [this](const job::Job& job) { return tell(job.spec.name, &job); },
        .on_removed = [this](const api::RemovedJob& gone) { return tell(gone.name, nullptr); },
        .on_ready = [this] { return tell_missing(); },
        .on_reset =
            [this] {
              seen_.clear();
              return true;
            }};
    const http::Wake wake{.fd = wake_fd_.get(), .on_wake = [this] { return heed(); }};
    return connection_.client().watch_jobs({.project = watch_.project}, place, handlers, wake);
  }

  bool tell(const std::string& name, const job::Job* job) {
    connection_.is_well();
    if (!watch_.names.contains(name)) return true;
    seen_.insert(name);
    return goes_on(watch_.on_job(name, job));
  }

  bool tell_missing() {
    return std::all_of(watch_.names.begin(), watch_.names.end(), [this](const std::string& name) {
      return seen_.contains(name) || goes_on(watch_.on_job(name, nullptr));
    });
  }

  bool goes_on(bool more) {
    if (!more) end_ = WatchEnd::kEnough;
    return more;
  }

  bool heed() {
    if (watch_.interrupts != nullptr && watch_.interrupts->take()) end_ = WatchEnd::kInterrupted;
    uint64_t count = 0;
    if (timer_ && ::read(timer_.get(), &count, sizeof count) > 0) end_ = WatchEnd::kBoundReached;
    return !end_;
  }

  Connection& connection_;
  const JobWatch& watch_;
  base::UniqueFd timer_;
  base::UniqueFd wake_fd_;
  std::set<std::string> seen_;
  std::optional<WatchEnd> end_;
};

}  // namespace

Result<WatchEnd> watch_jobs(Connection& connection, const JobWatch& watch) {
  return Watcher(connection, watch).run();
}

}  // namespace muster::cli
