#include "cli/logs/logs.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/logs/held_lines.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/paced_output.h"
#include "job/log_record.h"
#include "words/sentence.h"

namespace muster::cli::logs {

namespace {

/// Reports an invalid pattern before the server is contacted.
std::string read_pattern(Reading& in, const std::string& flag) {
  std::string text = in.reader.text(flag);
  if (text.empty()) in.reader.fault(flag, "is empty");
  const auto pattern = job::LogPattern::compile(text);
  if (!pattern) in.reader.fault(flag, pattern.error().what);
  return text;
}

Call read_logs(Reading& in) {
  const Reading::JobTask meant = in.job_and_task();
  LogsCommand command{
      .name = meant.job, .project = in.project_of_job(), .query = {}, .look = read_look(in)};
  command.query.follow = in.reader.has("--follow");
  if (!meant.task.empty()) command.query.task = meant.task;
  if (in.reader.has("--attempt")) {
    command.query.attempt = in.reader.number_between("--attempt", 1, 1);
  }
  command.query.since = in.reader.moment("--since", in.caller.now);
  if (in.reader.has("--tail")) command.query.tail = in.reader.number_between("--tail", 0, 0);
  if (in.reader.has("--rank")) command.query.rank = in.reader.number_between("--rank", 0, 0);
  if (in.reader.has("--grep")) command.query.grep = read_pattern(in, "--grep");
  command.look.json = in.reader.choice("--output", {"text", "json"}) == "json";
  for (const char* flag : {"--timestamps", "--no-prefix", "--no-fold"}) {
    if (command.look.json && in.reader.has(flag)) {
      in.reader.fault(flag, "cannot be used with --output json, which contains every field");
    }
  }
  return command;
}

}  // namespace

Flags look_flags() {
  return {{.name = "--timestamps", .help = "begin each line with its time"},
          {.name = "--no-prefix", .help = "print lines without [rank@host] or [task]"},
          {.name = "--no-fold", .help = "on a terminal, show every line, also repeated ones"}};
}

LogLook read_look(const Reading& in) {
  return {.prefix = !in.reader.has("--no-prefix"),
          .timestamps = in.reader.has("--timestamps"),
          .fold = !in.reader.has("--no-fold")};
}

Command logs_command() {
  return {
      .name = "logs",
      .help = "print the output of a job",
      .read = read_logs,
      .positionals = job_or_task(),
      .flags = Flags{{.name = "--follow", .letter = "-f", .help = "continue until the job ends"},
                     {.name = "--task", .value = "TASK", .help = "only this task"},
                     {.name = "--attempt",
                      .value = "N",
                      .help = "only this attempt of the job, from 1 (default: all attempts)"},
                     {.name = "--rank", .value = "N", .help = "only this rank"},
                     {.name = "--grep",
                      .value = "PATTERN",
                      .help = "only lines that match this regular expression"},
                     {.name = "--since",
                      .value = "TIME",
                      .help = "only entries after this time: 10m (ago), or 2026-01-31T12:00:00Z"},
                     {.name = "--tail",
                      .letter = "-n",
                      .value = "N",
                      .help = "only the last N lines; of an array, of each member"}} +
               job_project_flag() + look_flags() + output_flag({"text", "json"}),
      .example = "muster logs dist -f --rank 1 --grep loss",
      .see_also = "muster metrics, muster events"};
}

std::string no_match_text(const std::string& name, const job::LogQuery& query) {
  if (query.tail == 0) return {};
  std::string flags;
  if (query.task) flags += " --task " + *query.task;
  if (query.attempt) flags += " --attempt " + std::to_string(*query.attempt);
  if (query.rank) flags += " --rank " + std::to_string(*query.rank);
  if (!query.grep.empty()) flags += " --grep '" + query.grep + "'";
  if (query.since) flags += " --since " + base::to_rfc3339(*query.since, 0);
  if (flags.empty()) return {};
  return "no line of '" + name + "' matches" + flags;
}

void report_no_match(const FollowRequest& request) {
  const std::string word = no_match_text(request.name, request.query);
  if (word.empty()) return;
  std::cerr << request.program << ": " << word << '\n';
  if (request.query.rank) {
    std::cerr << "  only some lines carry a rank; without --rank, '" << request.program << " logs "
              << request.name << "' shows all\n";
  }
  std::cerr << std::flush;
}

Result<int> execute(const LogsCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  Interrupts interrupts;
  const FollowRequest request{.name = command.name, .query = command.query, .look = command.look};
  auto followed = follow(connection, interrupts, request);
  if (!followed && followed.error().code == base::ErrorCode::kNotFound) {
    auto code = follow_array(connection, interrupts, request);
    if (code) return *code == kExitFailed ? kExitDone : *code;
    if (code.error().code != base::ErrorCode::kNotFound) return std::move(code).error();
  }
  MUSTER_TRY(const FollowEnd end, std::move(followed));
  if (end.how == FollowEnd::How::kEnded && !end.has_output) report_no_match(request);
  if (end.how == FollowEnd::How::kEnded && !command.query.follow) return kExitDone;
  const int code = report_end(end, request, command.project);
  // The request was to show the logs, so the exit code does not depend on the job's result, which
  // is in the printed row.
  return end.how == FollowEnd::How::kEnded ? kExitDone : code;
}

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

// The bytes seen before a restart may extend beyond the first place after it.
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

constexpr time_t kFirstLook = 2;  // seconds
constexpr time_t kBetweenLooks = 5;

}  // namespace

WaitNotice::WaitNotice() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  itimerspec when{};
  when.it_value.tv_sec = kFirstLook;
  when.it_interval.tv_sec = kBetweenLooks;
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void WaitNotice::check(const Connection& connection, const FollowRequest& request) {
  uint64_t count = 0;
  if (!timer_ || ::read(timer_.get(), &count, sizeof count) != sizeof count) return;
  const auto job = connection.second_client()->get(request.name);
  // If the server is gone, follow() reconnects.
  if (!job) return;
  const std::string word = waiting_word(*job, request.commands);
  if (word.empty()) return done();
  if (word == shown_) return;
  shown_ = word;
  std::cerr << request.program + ": " + word << std::endl;
}

std::string waiting_word(const job::Job& job, const words::Commands& commands) {
  if (job.phase != job::Phase::kQueued || job::is_empty(job.reason)) return {};
  return "job '" + job.spec.name + "'" + words::after_colon(job.reason, commands);
}

namespace {

/// A descriptor that is readable while any of `fds` is readable.
base::UniqueFd epoll_set_of(std::initializer_list<int> descriptors) {
  base::UniqueFd all(::epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : descriptors) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return all;
}

// The maximum delay before the count of a repeated line is printed.
constexpr time_t kSecondsOfSilence = 1;
// A pipe gets the beginning of a line after twice this time, at most.
constexpr time_t kSecondsHeld = 2;

void start_timer(const base::UniqueFd& timer, time_t seconds) {
  itimerspec when{};
  when.it_value.tv_sec = seconds;
  ::timerfd_settime(timer.get(), 0, &when, nullptr);
}

/// Whether the timer has expired since the last call.
bool has_expired(const base::UniqueFd& timer) {
  uint64_t count = 0;
  return ::read(timer.get(), &count, sizeof count) == sizeof count;
}

constexpr size_t kEverything = std::numeric_limits<size_t>::max();

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
        leaves_out_(request.query.follow && folds_ && !request.look.json && output_.stop_waiting()),
        fold_timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        hold_timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
        wake_fd_(epoll_set_of({interrupts.fd(), output_.fd(), fold_timer_.get(), hold_timer_.get(),
                               waiting_.fd()})) {}

  Result<FollowEnd> run() {
    if (!request_.query.follow) waiting_.done();
    while (true) {
      auto job = read();
      if (left_ || (job && is_whole(*job))) return end(std::move(job));
      if (!job && job.error().code != base::ErrorCode::kUnavailable) return job.error();
      MUSTER_CHECK(come_back());
      if (left_) return end(std::move(job));
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
    // A stream that lasted this long counts as a success, even if the job printed nothing.
    constexpr std::chrono::seconds kWhile{10};
    if (std::chrono::steady_clock::now() - begin > kWhile) connection_.is_well();
    return job;
  }

  bool on_record(const job::LogRecord& record) {
    const job::LogRecord* const unseen = cursor_.unseen(record);
    if (unseen == nullptr) return true;
    connection_.is_well();
    waiting_.done();
    has_output_ = true;
    if (output_error_) return true;
    if (may_be_left_out(*unseen)) return hold_or_print(*unseen);
    print_held(kEverything);
    print(*unseen);
    const bool is_enough = output_.buffer().size() >= PacedOutput::kEnough;
    return check_output(is_enough ? output_.flush() : output_.commit());
  }

  /// Does not wait for the terminal.
  bool hold_or_print(const job::LogRecord& record) {
    if (!held_.empty() || output_.buffer().size() >= PacedOutput::kTerminalPiece) {
      held_.add(record);
      return true;
    }
    print(record);
    return check_output(output_.commit());
  }

  /// Output from before the start of this command is shown completely, at the speed of the
  /// terminal.
  bool may_be_left_out(const job::LogRecord& record) const {
    return leaves_out_ && record.time >= begin_;
  }

  /// Prints held lines until the output has `enough` bytes.
  void print_held(size_t enough) {
    const HeldLines::Handlers handlers{
        .on_line = [this](const job::LogRecord& record) { print(record); },
        .on_gap =
            [this](const job::LogRecord& next, uint64_t lines) {
              // Lines of both streams were dropped.
              for (const auto stream : {job::LogStream::kOutput, job::LogStream::kError}) {
                job::LogRecord of = next;
                of.stream = stream;
                printer_.end_line(of, output_.buffer());
              }
              print(gap_of(next, lines));
            }};
    while (!held_.empty() && output_.buffer().size() < enough) held_.take_some(handlers);
  }

  void print(const job::LogRecord& record) {
    printer_.resize(columns_now(terminal_));
    if (request_.look.json) {
      append_json(record, terminal_, output_.buffer());
    } else if (folds_) {
      fold_.print(record, output_.buffer());
      if (fold_.holds()) set_fold_timer();
    } else {
      printer_.print(record, output_.buffer());
      if (record.continues) set_hold_timer();
    }
  }

  void set_fold_timer() {
    if (!std::exchange(fold_timer_set_, true)) start_timer(fold_timer_, kSecondsOfSilence);
  }

  void set_hold_timer() {
    // All of a log that is not followed is there: its pieces do not depend on the speed of reading.
    if (!request_.query.follow || hold_timer_set_ || !printer_.holds()) return;
    hold_timer_set_ = true;
    start_timer(hold_timer_, kSecondsHeld);
  }

  void print_what_was_held() {
    if (!has_expired(hold_timer_)) return;
    hold_timer_set_ = false;
    if (!output_error_) printer_.release(output_.buffer());
    set_hold_timer();
  }

  void print_folded() {
    if (!has_expired(fold_timer_)) return;
    fold_timer_set_ = false;
    if (!output_error_) fold_.print_count(output_.buffer());
  }

  bool on_wake() {
    print_folded();
    print_what_was_held();
    waiting_.check(connection_, request_);
    if (!output_error_) print_held(PacedOutput::kTerminalPiece);
    if (!check_output(output_.write_some(!held_.empty()))) return false;
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
              << request_.name << "'"
              << (interruptions_ == 1 ? "; press Ctrl-C again to kill it now" : "") << std::endl;
    ask_to_stop();
    return true;
  }

  /// Uses its own client: the other one is occupied by the stream. Another Ctrl-C ends the request.
  void ask_to_stop() {
    const auto client = connection_.second_client();
    client->set_wake(ended_by_signals(interrupts_.fd()));
    const auto stopped = client->stop(request_.name, interruptions_ > 1);
    // If the server is gone, the request is repeated after reconnecting.
    if (!stopped && stopped.error().code != base::ErrorCode::kUnavailable) {
      std::cerr << error_text(stopped.error()) << std::flush;
    }
  }

  /// Whether to continue reading. If the output of a foreground job can no longer be written, the
  /// job is stopped, and its end is awaited without output.
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

  /// Whether `job`, the last message of a stream, completes the request. A server that shuts down
  /// ends the streams of jobs that still run.
  bool is_whole(const job::Job& job) const {
    return !request_.query.follow || job::is_final(job.phase);
  }

  Result<FollowEnd> end(Result<job::Job> job) {
    if (!output_error_) {
      // After Ctrl-C, the held lines are dropped.
      if (!left_) print_held(kEverything);
      fold_.print_count(output_.buffer());
      printer_.finish(output_.buffer());
      static_cast<void>(check_output(output_.flush()));
    }
    FollowEnd result{.how = left_ ? FollowEnd::How::kInterrupted : FollowEnd::How::kEnded,
                     .job = job ? *job : job::Job{},
                     .stop_asked = interruptions_ > 0,
                     .has_output = has_output_};
    if (!output_error_) return result;
    MUSTER_TRY(result.how, end_by_output(*output_error_));
    return result;
  }

  /// Reconnects, unless the user leaves; starts a local server if necessary.
  Result<void> come_back() {
    if (!output_error_) print_held(kEverything);
    static_cast<void>(output_.flush());
    while (true) {
      MUSTER_TRY(const bool is_back, connection_.come_back(interrupts_.fd()));
      if (is_back) break;
      while (interrupts_.take()) {
        if (!on_interrupt()) return {};
      }
    }
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
  bool leaves_out_;  ///< lines are left out if the terminal is slow
  HeldLines held_;
  base::Time begin_ = base::SystemClock().now();
  base::UniqueFd fold_timer_;
  bool fold_timer_set_ = false;
  base::UniqueFd hold_timer_;
  bool hold_timer_set_ = false;
  WaitNotice waiting_;
  base::UniqueFd wake_fd_;
  LogCursor cursor_;
  std::optional<base::Error> output_error_;  ///< if set, nothing more is printed
  bool left_ = false;                        ///< the user left before the end
  bool has_output_ = false;
  int interruptions_ = 0;
};

void show_detached(const FollowRequest& request, const std::string& project) {
  const std::string task = request.query.task ? "/" + *request.query.task : "";
  const std::string flag = project.empty() ? "" : " --project " + project;
  std::cerr << "muster: detached; job '" << request.name << "' continues\n"
            << "  follow it again: muster logs -f " << request.name << task << flag << "\n"
            << "  stop it: muster stop " << request.name << flag << std::endl;
}

}  // namespace

Result<FollowEnd::How> end_by_output(base::Error error) {
  if (error.code == base::ErrorCode::kUnavailable) return FollowEnd::How::kPipeClosed;
  error.code = base::ErrorCode::kInternal;  // the server refused nothing
  return error;
}

Result<FollowEnd> follow(Connection& connection, Interrupts& interrupts,
                         const FollowRequest& request) {
  return Follower(connection, interrupts, request).run();
}

int report_end(const FollowEnd& end, const FollowRequest& request, const std::string& project) {
  if (end.how == FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == FollowEnd::How::kInterrupted) {
    // The terminal has just shown "^C".
    if (terminal_of(STDERR_FILENO).is_terminal) std::cerr << '\n';
    if (!job::is_final(end.job.phase)) show_detached(request, project);
    return kExitInterrupted;
  }
  const std::string text = failure_text(end.job) + job_row(end.job, base::SystemClock().now());
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  const bool stopped_here = request.on_interrupt == OnInterrupt::kStop && end.stop_asked;
  if (stopped_here && end.job.phase == job::Phase::kStopped) return kExitInterrupted;
  return exit_code_of(end.job);
}

}  // namespace muster::cli::logs
