#include "cli/logs/follow.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <utility>

#include "api/wire.h"
#include "base/units.h"
#include "cli/common/job_view.h"
#include "cli/common/report.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/log_stream.h"

namespace muster::cli::logs {

namespace {

/// One descriptor that is readable while any of these is.
base::UniqueFd epoll_set_of(std::initializer_list<int> descriptors) {
  base::UniqueFd all(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : descriptors) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return all;
}

/// A record as the API has it, in a line. A terminal obeys DEL and C1 as it does C0, which JSON
/// escapes anyway.
void append_json(const job::LogRecord& record, bool is_terminal, std::string& out) {
  const size_t begin = out.size();
  api::append_log_record(out, record);
  out += '\n';
  if (!is_terminal) return;
  const std::string text = out.substr(begin);
  out.resize(begin);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (text[i] == '\xc2' && next >= 0x80 && next <= 0x9f) {
      out += next < 0x90 ? "\\u008" : "\\u009";
      out += "0123456789abcdef"[next & 15];
      ++i;
    } else if (text[i] == '\x7f') {
      out += "\\u007f";
    } else {
      out += text[i];
    }
  }
}

// How long a repeated line may be counted in silence.
constexpr time_t kSecondsOfSilence = 1;

class Follower {
 public:
  Follower(Connection& connection, Interrupts& interrupts, const FollowRequest& request)
      : connection_(connection),
        interrupts_(interrupts),
        request_(request),
        terminal_(terminal_of(STDOUT_FILENO)),
        folds_(request.look.fold && terminal_.is_terminal),
        printer_(request.look, terminal_, request.head),
        output_(STDOUT_FILENO),
        fold_timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        wake_fd_(
            epoll_set_of({interrupts.fd(), output_.timer_fd(), fold_timer_.get(), waiting_.fd()})) {
  }

  Result<FollowEnd> run() {
    if (!request_.query.follow) waiting_.done();
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
    waiting_.done();
    if (output_error_) return true;
    print(*unseen);
    return check_output(output_.commit());
  }

  void print(const job::LogRecord& record) {
    if (request_.look.json) {
      append_json(record, terminal_.is_terminal, output_.buffer());
    } else if (folds_) {
      fold_.print(record, output_.buffer());
      if (fold_.holds()) set_fold_timer();
    } else {
      printer_.print(record, output_.buffer());
    }
  }

  void set_fold_timer() {
    if (std::exchange(fold_timer_set_, true)) return;
    itimerspec when{};
    when.it_value.tv_sec = kSecondsOfSilence;
    ::timerfd_settime(fold_timer_.get(), 0, &when, nullptr);
  }

  void tell_what_was_folded() {
    uint64_t count = 0;
    if (::read(fold_timer_.get(), &count, sizeof count) != sizeof count) return;
    fold_timer_set_ = false;
    if (!output_error_) fold_.tell(output_.buffer());
  }

  bool on_wake() {
    tell_what_was_folded();
    waiting_.look(connection_, request_.name);
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
      fold_.tell(output_.buffer());
      printer_.finish(output_.buffer());
      static_cast<void>(check_output(output_.flush()));
    }
    FollowEnd result{.how = left_ ? FollowEnd::How::kInterrupted : FollowEnd::How::kEnded,
                     .job = job ? *job : job::Job{},
                     .stop_asked = interruptions_ > 0};
    if (!output_error_) return result;
    if (output_error_->code != base::ErrorCode::kUnavailable) {
      output_error_->code = base::ErrorCode::kInternal;  // nothing that the server refused
      return *output_error_;
    }
    result.how = FollowEnd::How::kPipeClosed;
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
  Terminal terminal_;
  bool folds_;
  LogPrinter printer_;
  LogFold fold_{printer_};
  PacedOutput output_;
  base::UniqueFd fold_timer_;
  bool fold_timer_set_ = false;
  WaitingWord waiting_;
  base::UniqueFd wake_fd_;
  LogCursor cursor_;
  std::optional<base::Error> output_error_;  ///< once set, nothing more is printed
  bool left_ = false;                        ///< before the end
  int interruptions_ = 0;
};

void show_detached(const std::string& name) {
  // The terminal has just shown "^C".
  if (terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
  std::cerr << "muster: detached; job '" << name << "' goes on\n"
            << "  to follow it again: muster logs -f " << name << "\n"
            << "  to stop it: muster stop " << name << std::endl;
}

}  // namespace

Result<FollowEnd> follow(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request) {
  return Follower(connection, interrupts, request).run();
}

int report_end(const FollowEnd& end, const std::string& name, OnInterrupt meaning) {
  if (end.how == FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == FollowEnd::How::kInterrupted) {
    show_detached(name);
    return kExitInterrupted;
  }
  const std::string text = failure_text(end.job) + job_row(end.job, base::SystemClock().now());
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  const bool stopped_here = meaning == OnInterrupt::kStop && end.stop_asked;
  if (stopped_here && end.job.phase == job::Phase::kStopped) return kExitInterrupted;
  return exit_code_of(end.job);
}

}  // namespace muster::cli::logs
