#include "cli/sessions/terminal_session.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "api/terminal.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "words/sentence.h"

namespace muster::cli::sessions {

namespace {

constexpr std::string_view kControl = "ctrl-";
/// A control key is the character with its upper bits cleared: '@' to '_', and lower-case letters.
constexpr char kControlBits = 0x1f;

char key_of(std::string_view word) {
  if (word.size() == 1) return word.front();
  if (!word.starts_with(kControl) || word.size() != kControl.size() + 1) return '\0';
  const char letter = word.back();
  const bool has_control = (letter >= '@' && letter <= '_') || (letter >= 'a' && letter <= 'z');
  return has_control ? static_cast<char>(letter & kControlBits) : '\0';
}

}  // namespace

base::Result<std::string> parse_detach_keys(std::string_view text) {
  std::string keys;
  for (const std::string& word : base::split(std::string(text), ',')) {
    const char key = key_of(word);
    if (key == '\0' && word != "ctrl-@") {
      return base::Error{
          .code = base::ErrorCode::kInvalid,
          .what = "'" + word + "' is not a key; give keys such as ctrl-p,ctrl-q or ctrl-a,d"};
    }
    keys += key;
  }
  if (!keys.empty()) return keys;
  return base::Error{.code = base::ErrorCode::kInvalid, .what = "no keys are given"};
}

std::string words_of_detach_keys(std::string_view keys) {
  std::string words;
  for (const char key : keys) {
    words += words.empty() ? "" : " ";
    const bool is_control = static_cast<unsigned char>(key) <= kControlBits;
    if (!is_control) {
      words += key;
      continue;
    }
    const char letter = static_cast<char>(key | '@');
    words += std::string(kControl) +
             (letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter);
  }
  return words;
}

// After a mismatch, usually only the last key can begin the sequence again. A sequence that
// contains its own beginning ("a,a,b") resumes at its longest beginning with which the held-back
// keys end.
std::string DetachKeys::pass(std::string_view typed) {
  std::string passed;
  if (keys_.empty()) return std::string(typed);
  for (const char key : typed) {
    if (found_) break;
    std::string held = keys_.substr(0, matched_) + key;
    while (!held.empty() && !keys_.starts_with(held)) {
      passed += held.front();
      held.erase(0, 1);
    }
    matched_ = held.size();
    found_ = matched_ == keys_.size();
  }
  return passed;
}

namespace {

using http::WebSocket;
using How = SessionEnd::How;

// Status code of RFC 6455, 7.4.1: the server closes the connection because the user is no longer
// allowed.
constexpr int kMayNotAnyMore = 1008;

constexpr size_t kInputBufferBytes = 64 << 10;

/// One descriptor for input and signals. While it exists, the watched signals have no other effect,
/// and a closed pipe is an error of write() instead of SIGPIPE, which would end this process without
/// restoring the terminal.
class InputAndSignals {
 public:
  explicit InputAndSignals(bool input) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGWINCH, SIGINT, SIGTERM}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
    signals_.reset(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
    watch(signals_.get());
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe_before_);
    // epoll does not accept regular files: they are always readable.
    if (input && !watch(STDIN_FILENO)) {
      always_.reset(::eventfd(1, EFD_CLOEXEC));
      watch(always_.get());
    }
  }
  InputAndSignals(const InputAndSignals&) = delete;
  InputAndSignals& operator=(const InputAndSignals&) = delete;
  ~InputAndSignals() {
    while (take_signal()) continue;
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  int fd() const { return epoll_.get(); }

  /// The next pending signal; 0: none.
  int take_signal() {
    signalfd_siginfo info{};
    const bool came = ::read(signals_.get(), &info, sizeof info) == sizeof info;
    return came ? static_cast<int>(info.ssi_signo) : 0;
  }

  bool has_input() const {
    std::array<epoll_event, 2> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<size_t>(i)].data.fd != signals_.get()) return true;
    }
    return false;
  }

  void stop_watching_input() { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, input_fd(), nullptr); }

  void watch_input_again() { watch(input_fd()); }

  /// fd() stays readable from now on.
  void stay_readable() {
    if (!awake_) awake_.reset(::eventfd(1, EFD_CLOEXEC));
    watch(awake_.get());
  }

 private:
  int input_fd() const { return always_ ? always_.get() : STDIN_FILENO; }

  bool watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  base::UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  base::UniqueFd signals_;
  base::UniqueFd always_;
  base::UniqueFd awake_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
};

/// Connects the caller's terminal to the program's end of the connection.
class Session {
 public:
  Session(http::WebSocketClient& socket, const SessionOptions& options)
      : socket_(socket), options_(options), events_(options.input), keys_(options.detach_keys) {}

  Result<SessionEnd> run() {
    const http::Wake wake{.fd = events_.fd(), .on_wake = [this] { return handle_events(); }};
    // Output and signals are handled even if the program reads no input.
    socket_.queue_messages([this] { on_drain(); });
    send_size();  // the size may have changed before the signal was watched
    if (auto greeted = greet(); !greeted) return not_shown(std::move(greeted).error());
    while (true) {
      auto message = socket_.receive(wake);
      if (left_) return *left_;
      if (!message) return gone(std::move(message).error());
      if (!*message) return closed();
      if ((*message)->kind == WebSocket::Kind::kBinary) {
        auto shown = show((*message)->data);
        if (!shown) return not_shown(std::move(shown).error());
      } else {
        MUSTER_TRY(exit_, api::terminal_exit_from_json((*message)->data));
      }
    }
  }

 private:
  Result<void> greet() const {
    if (options_.greeting.empty()) return {};
    // In raw mode, a newline does not return to the first column.
    return base::write_all(STDERR_FILENO, options_.greeting + "\r\n");
  }

  /// False: leave. Failures of sending are visible in the messages received later.
  bool handle_events() {
    if (left_) return false;
    while (const int signal = events_.take_signal()) {
      if (signal != SIGWINCH) return leave(How::kInterrupted, signal);
      if (!detaching_) send_size();
    }
    return detaching_ || !events_.has_input() || pass_input();
  }

  bool leave(How how, int signal = 0) {
    left_ = SessionEnd{.how = how, .signal = signal};
    return false;
  }

  void send_size() {
    if (!options_.terminal || !options_.input) return;
    const auto size = size_of_terminal(STDIN_FILENO);
    if (size) send(api::Resize{.rows = size->first, .columns = size->second});
  }

  bool pass_input() {
    std::array<char, kInputBufferBytes> buffer;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (count > 0) return pass({buffer.data(), static_cast<size_t>(count)});
    // A terminal in raw mode reports no end of input unless it was closed.
    if (options_.terminal && has_terminal_) return leave(How::kInterrupted, SIGHUP);
    has_input_ = false;
    events_.stop_watching_input();
    send(api::CloseInput{});
    return true;
  }

  void on_drain() {
    const bool was_paused = std::exchange(input_paused_, false);
    if (detaching_) {
      leave(How::kDetached);
      events_.stay_readable();  // ends receive()
    } else if (was_paused && has_input_) {
      events_.watch_input_again();
    }
  }

  bool pass(std::string_view typed) {
    const std::string passed = keys_.pass(typed);
    if (!passed.empty()) {
      [[maybe_unused]] const auto sent = socket_.send(WebSocket::Kind::kBinary, passed);
      if (socket_.waiting() > WebSocket::kHigh) {
        input_paused_ = true;
        events_.stop_watching_input();
      }
    }
    if (!keys_.found()) return true;
    if (socket_.waiting() == 0) return leave(How::kDetached);
    // What was typed before the keys is sent first.
    detaching_ = true;
    events_.stop_watching_input();
    return true;
  }

  void send(const api::TerminalControl& control) {
    [[maybe_unused]] const auto sent =
        socket_.send(WebSocket::Kind::kText, api::terminal_control_to_json(control));
  }

  static Result<void> show(std::string_view message) {
    if (message.empty()) return {};
    const int fd = message.front() == api::kErrorByte ? STDERR_FILENO : STDOUT_FILENO;
    return base::write_all(fd, message.substr(1));
  }

  static Result<SessionEnd> not_shown(base::Error error) {
    if (error.code == base::ErrorCode::kUnavailable) return SessionEnd{.how = How::kPipeClosed};
    error.code = base::ErrorCode::kInternal;  // the server refused nothing
    return error;
  }

  Result<SessionEnd> gone(base::Error error) const {
    // An answer that cannot be parsed does not mean that the server is gone.
    if (error.code != base::ErrorCode::kUnavailable) return error;
    if (exit_) return SessionEnd{.exit = *exit_};
    return SessionEnd{.how = How::kServerGone, .error = std::move(error)};
  }

  Result<SessionEnd> closed() const {
    if (exit_) return SessionEnd{.exit = *exit_};
    base::Error error{.code = base::ErrorCode::kUnavailable,
                      .what = "the server closed the program's terminal, with code " +
                              std::to_string(socket_.close_code()),
                      .advice =
                          "check your roles with 'muster whoami', and whether the job still runs "
                          "with 'muster get'"};
    if (socket_.close_code() == kMayNotAnyMore) return error;
    return SessionEnd{.how = How::kServerGone, .error = std::move(error)};
  }

  http::WebSocketClient& socket_;
  const SessionOptions& options_;
  InputAndSignals events_;
  bool has_input_ = true;      ///< the input has not ended
  bool input_paused_ = false;  ///< until the server has taken what was read
  bool detaching_ = false;  ///< the keys were typed: leave when the server has taken what was read
  DetachKeys keys_;
  // Determined once, because isatty() fails after the terminal has closed.
  const bool has_terminal_ = ::isatty(STDIN_FILENO) == 1;
  std::optional<SessionEnd> left_;
  std::optional<job::ExitStatus> exit_;
};

}  // namespace

Result<SessionEnd> run_session(http::WebSocketClient& socket, const SessionOptions& options) {
  std::optional<RawTerminal> raw;
  if (options.terminal && options.input) raw.emplace(STDIN_FILENO);
  return Session(socket, options).run();
}

int exit_code_of(const SessionEnd& end) {
  switch (end.how) {
    case How::kExited:
      return end.exit.shell_code();
    case How::kDetached:
      return kExitDone;
    case How::kInterrupted:
      return 128 + end.signal;
    case How::kPipeClosed:
      return kExitBrokenPipe;
    case How::kServerGone:
      break;
  }
  return kExitUnreachable;
}

using base::Result;

namespace {

// $1: the caller's TERM, used only if the task has its description; the rest: NAME=VALUE. Tasks
// that an earlier release started lack the shell's files; tasks without bash use sh.
constexpr const char* kOpenShell = R"sh(
for folder in /etc/terminfo /lib/terminfo /usr/share/terminfo /usr/lib/terminfo; do
  if [ -n "$1" ] && [ -e "$folder/${1%"${1#?}"}/$1" ]; then export TERM="$1"; fi
done
shift
for variable in "$@"; do export "$variable"; done
if [ -x "$MUSTER_GENERATED/bash/start" ]; then exec "$MUSTER_GENERATED/bash/start"; fi
if command -v bash > /dev/null 2>&1; then exec bash; fi
exec sh
)sh";

constexpr std::array<const char*, 4> kLanguage{"LANG", "LANGUAGE", "LC_ALL", "COLORTERM"};

std::string terminal_type(const std::map<std::string, std::string>& caller) {
  const auto found = caller.find("TERM");
  if (found == caller.end()) return "";
  // The value becomes part of a path.
  const bool is_plain = found->second.find_first_of("/ \n") == std::string::npos;
  return is_plain && found->second != "dumb" ? found->second : "";
}

std::map<std::string, std::string> environment_here() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

/// Explains exit code 137 if the job has ended.
void report_if_job_ended(Connection& connection, const std::string& name) {
  const auto job = connection.call([&](api::Client& client) { return client.get(name); });
  if (!job || (!job::is_final(job->phase) && !job->stop_requested)) return;
  std::cerr << "muster: the shell ended with job '" << name << "'"
            << safe_lines(words::after_colon(job->reason)) << std::endl;
}

}  // namespace

std::vector<std::string> shell_command(const std::map<std::string, std::string>& caller) {
  std::vector<std::string> command{"/bin/sh", "-c", kOpenShell, "muster-bash",
                                   terminal_type(caller)};
  bool has_language = false;
  for (const auto& [name, value] : caller) {
    const bool goes_along = name.starts_with("LC_") ||
                            std::find(kLanguage.begin(), kLanguage.end(), name) != kLanguage.end();
    if (!goes_along || value.empty()) continue;
    has_language = has_language || name == "LANG" || name == "LC_ALL" || name == "LC_CTYPE";
    command.push_back(name + "=" + value);
  }
  // Modern terminals use UTF-8, whatever values the locale variables have. A shell in another locale
  // cannot edit lines with non-ASCII characters.
  if (!has_language) command.emplace_back("LANG=C.UTF-8");
  return command;
}

Result<int> run_shell(Connection& connection, const ShellOptions& options) {
  api::ExecRequest request{.command = shell_command(environment_here()), .task = options.task};
  // Piped input does not come from a terminal and must not be echoed.
  request.terminal = ::isatty(STDIN_FILENO) == 1;
  if (const auto size = size_of_terminal(STDIN_FILENO)) {
    request.rows = size->first;
    request.columns = size->second;
  }
  MUSTER_TRY(const auto socket, connection.call([&](api::Client& client) {
    return client.exec(options.job, request);
  }));
  MUSTER_TRY(const SessionEnd end, run_session(*socket, {.terminal = request.terminal}));
  if (end.how == SessionEnd::How::kServerGone) {
    return base::Error{.code = base::ErrorCode::kUnavailable,
                       .what = "lost the connection to the server; the job continues: " +
                               options.reopen + " opens a new shell"};
  }
  if (!end.exit.error.empty()) std::cerr << "muster: " << end.exit.error << std::endl;
  if (end.exit.signal == SIGKILL) report_if_job_ended(connection, options.job);
  return exit_code_of(end);
}

}  // namespace muster::cli::sessions
