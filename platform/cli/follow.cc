#include "cli/follow.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>

#include "cli/log_cursor.h"
#include "cli/log_printer.h"
#include "cli/paced_output.h"
#include "cli/report.h"
#include "job/units.h"

namespace muster::cli {

namespace {

using How = FollowEnd::How;

/// One descriptor that is readable while any of two is.
base::UniqueFd either(int first, int second) {
  base::UniqueFd both(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {first, second}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(both.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return both;
}

class Follower {
 public:
  Follower(Connection& connection, Interrupts& interrupts, const FollowRequest& request)
      : connection_(connection),
        interrupts_(interrupts),
        request_(request),
        printer_(request.look, terminal_of(STDOUT_FILENO), request.head),
        output_(STDOUT_FILENO),
        wake_fd_(either(interrupts.fd(), output_.timer_fd())) {}

  Result<FollowEnd> run() {
    while (true) {
      auto job = read();
      if (left_ || (job && is_whole(*job))) return end(std::move(job));
      if (!job && job.error().code != base::ErrorCode::kUnavailable) return job.error();
      MUSTER_CHECK(come_back());
      cursor_.restart();
    }
  }

 private:
  Result<job::Job> read() {
    const auto begin = std::chrono::steady_clock::now();
    const http::Wake wake{.fd = wake_fd_.get(), .on_wake = [this] { return on_wake(); }};
    const api::Client::LogHandlers handlers{
        .on_record = [this](const job::LogRecord& record) { return on_record(record); },
        .on_place = [this](const std::string& place) { cursor_.reach(place); }};
    const std::string place = cursor_.place();
    auto job = connection_.client().logs(request_.name, request_.query, place, handlers, wake);
    // A server that stood for a while is no failure, be the job silent for ever so long.
    constexpr std::chrono::seconds kWhile{10};
    if (std::chrono::steady_clock::now() - begin > kWhile) connection_.is_well();
    return job;
  }

  bool on_record(const job::LogRecord& record) {
    const job::LogRecord* const unseen = cursor_.unseen(record);
    if (unseen == nullptr) return true;
    connection_.is_well();
    if (output_error_) return true;
    printer_.print(*unseen, output_.buffer());
    return check_output(output_.commit());
  }

  bool on_wake() {
    if (!check_output(output_.flush())) return false;
    while (interrupts_.take()) {
      if (!on_interrupt()) return false;
    }
    return true;
  }

  bool on_interrupt() {
    ++interruptions_;
    constexpr int kGiveUp = 3;
    if (request_.on_interrupt == OnInterrupt::kDetach || interruptions_ >= kGiveUp) {
      left_ = true;
      return false;
    }
    // The terminal has just shown "^C".
    if (terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
    std::cerr << "muster: " << (interruptions_ == 1 ? "stopping" : "killing") << " job '"
              << request_.name << "'" << (interruptions_ == 1 ? "; Ctrl-C again kills it now" : "")
              << std::endl;
    ask_to_stop();
    return true;
  }

  /// By a client of its own: the stream has the other one busy.
  void ask_to_stop() {
    const auto stopped = connection_.second_client()->stop(request_.name, interruptions_ > 1);
    // A server that is gone is asked again once it is back.
    if (!stopped && stopped.error().code != base::ErrorCode::kUnavailable) {
      std::cerr << error_text(stopped.error()) << std::flush;
    }
  }

  /// Whether to read on. A job in the foreground whose output goes nowhere any more is stopped, and
  /// its end awaited in silence.
  bool check_output(const Result<void>& written) {
    if (written || output_error_) return true;
    output_error_ = written.error();
    if (request_.on_interrupt == OnInterrupt::kDetach) {
      left_ = true;
      return false;
    }
    ask_to_stop();
    return true;
  }

  /// Whether `job`, which a stream ended with, is the end of what was asked for. A server that
  /// leaves ends the streams of jobs that go on.
  bool is_whole(const job::Job& job) const {
    return !request_.query.follow || job::is_final(job.phase);
  }

  Result<FollowEnd> end(Result<job::Job> job) {
    if (!output_error_) {
      printer_.finish(output_.buffer());
      static_cast<void>(check_output(output_.flush()));
    }
    FollowEnd result{.how = left_ ? How::kInterrupted : How::kEnded,
                     .job = job ? *job : job::Job{},
                     .stop_asked = interruptions_ > 0};
    if (!output_error_) return result;
    if (output_error_->code != base::ErrorCode::kUnavailable) {
      output_error_->code = base::ErrorCode::kInternal;  // nothing that the server refused
      return *output_error_;
    }
    result.how = How::kPipeClosed;
    return result;
  }

  /// Finds or starts a server after one went away.
  Result<void> come_back() {
    static_cast<void>(output_.flush());
    MUSTER_CHECK(connection_.come_back());
    if (interruptions_ > 0 || output_error_) ask_to_stop();
    return {};
  }

  Connection& connection_;
  Interrupts& interrupts_;
  const FollowRequest& request_;
  LogPrinter printer_;
  PacedOutput output_;
  base::UniqueFd wake_fd_;
  LogCursor cursor_;
  std::optional<base::Error> output_error_;  ///< once set, nothing more is printed
  bool left_ = false;                        ///< before the end
  int interruptions_ = 0;
};

}  // namespace

Result<FollowEnd> follow(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request) {
  return Follower(connection, interrupts, request).run();
}

}  // namespace muster::cli
