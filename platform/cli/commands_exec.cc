// exec: a program in a task, with the caller's input and outputs.
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <optional>

#include "api/terminal.h"
#include "base/files.h"
#include "cli/commands.h"
#include "cli/raw_terminal.h"
#include "cli/report.h"
#include "http/websocket.h"

namespace muster::cli {

namespace {

using http::WebSocket;

constexpr size_t kPiece = 64 << 10;

/// One descriptor for all that may happen here while the program says nothing: input, and signals.
/// While it lives, the signals that it watches do nothing else.
class Happenings {
 public:
  Happenings() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGWINCH, SIGINT, SIGTERM}) sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
    signals_.reset(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
    watch(signals_.get());
    // A file is no matter for epoll: it can always be read.
    if (!watch(STDIN_FILENO)) {
      always_.reset(::eventfd(1, EFD_CLOEXEC));
      watch(always_.get());
    }
  }
  Happenings(const Happenings&) = delete;
  Happenings& operator=(const Happenings&) = delete;
  ~Happenings() {
    while (take_signal()) continue;
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  int fd() const { return epoll_.get(); }

  /// The next signal that came; 0: none.
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

  void forget_input() {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, always_ ? always_.get() : STDIN_FILENO, nullptr);
  }

 private:
  bool watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  base::UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  base::UniqueFd signals_;
  base::UniqueFd always_;
  sigset_t mask_before_{};
};

/// The program's end of the connection, and this one.
class Session {
 public:
  Session(http::WebSocketClient& socket, bool terminal) : socket_(socket), terminal_(terminal) {}

  Result<int> run() {
    const http::Wake wake{.fd = happenings_.fd(), .on_wake = [this] { return heed(); }};
    tell_size();  // it may have changed before anybody looked out for it
    while (true) {
      MUSTER_TRY(const auto message, socket_.receive(wake));
      if (interrupted_) return 128 + interrupted_;
      if (!message) return ended();
      if (message->kind == WebSocket::Kind::kBinary) {
        MUSTER_CHECK(show(message->data));
      } else {
        MUSTER_TRY(exit_, api::terminal_exit_from_json(message->data));
      }
    }
  }

 private:
  /// False: leave. Whether what is sent arrives is told by what is received.
  bool heed() {
    while (const int signal = happenings_.take_signal()) {
      if (signal != SIGWINCH) {
        interrupted_ = signal;
        return false;
      }
      tell_size();
    }
    if (happenings_.has_input()) pass_input();
    return true;
  }

  void tell_size() {
    const auto size = terminal_ ? size_of_terminal(STDIN_FILENO) : std::nullopt;
    if (!size) return;
    send(api::Resize{.rows = size->first, .columns = size->second});
  }

  void pass_input() {
    std::array<char, kPiece> buffer;
    const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) {
      [[maybe_unused]] const auto sent =
          socket_.send(WebSocket::Kind::kBinary, {buffer.data(), static_cast<size_t>(count)});
      return;
    }
    happenings_.forget_input();
    send(api::CloseInput{});
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

  Result<int> ended() const {
    if (!exit_) {
      return base::Error{.code = base::ErrorCode::kUnavailable,
                         .what = "the server closed the program's terminal, with code " +
                                 std::to_string(socket_.close_code()),
                         .advice =
                             "see with 'muster whoami' and 'muster get' whether you still "
                             "may, and whether the job still runs"};
    }
    if (!exit_->error.empty()) std::cerr << "muster: " << exit_->error << std::endl;
    return exit_->shell_code();
  }

  http::WebSocketClient& socket_;
  bool terminal_;
  Happenings happenings_;
  int interrupted_ = 0;
  std::optional<job::ExitStatus> exit_;
};

}  // namespace

Result<int> execute(const ExecCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  api::ExecRequest request = command.request;
  if (const auto size = size_of_terminal(STDIN_FILENO); size && request.terminal) {
    request.rows = size->first;
    request.columns = size->second;
  }
  MUSTER_TRY(const auto socket, connection.call([&](api::Client& client) {
    return client.exec(command.name, request);
  }));
  Result<int> code = kExitDone;
  {
    std::optional<RawTerminal> raw;
    if (request.terminal) raw.emplace(STDIN_FILENO);
    code = Session(*socket, request.terminal).run();
  }
  return code;  // an error is printed on a terminal that is as it was
}

}  // namespace muster::cli
