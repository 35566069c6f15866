#include "engine/rsh/ends.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nss.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/pipe.h"
#include "engine/rsh/connection.h"

namespace muster::engine::rsh {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

using Clock = std::chrono::steady_clock;

namespace {

/// The time limit for a far end to answer.
constexpr std::chrono::seconds kPatience{30};

/// A shell reports a command that a signal ended as exit code 128 + signal.
constexpr int kSignalled = 128;

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};

/// Keep-alive probes detect a machine that vanished, even on a connection that is idle for days.
void watch_for_silence(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

class NearEnd {
 public:
  NearEnd(UniqueFd socket, const Key& key, const std::string& command, NearStreams streams)
      : connection_(End::kNear, std::move(socket), key),
        command_(command),
        input_(Stream::kInput, std::move(streams.input)),
        output_(Stream::kOutput, std::move(streams.output)),
        errors_(Stream::kError, std::move(streams.errors)),
        signals_(std::move(streams.signals)) {}

  Result<int> run() {
    MUSTER_CHECK(show_key());
    connection_.send(Command{command_});
    if (input_.ended()) connection_.send(StreamEnd{Stream::kInput});
    while (listens_ || !output_.idle() || !errors_.idle()) wait_for_something();
    return code_;
  }

 private:
  Result<void> show_key() {
    const auto deadline = Clock::now() + kPatience;
    while (!connection_.established()) {
      pollfd watched = connection_.interest();
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return lost("does not answer");
      if (::poll(&watched, 1, static_cast<int>(left.count())) < 0) continue;
      MUSTER_CHECK(connection_.turn(watched.revents));
      if (connection_.lost()) return lost("closed the connection");
    }
    return {};
  }

  static Error lost(const std::string& what) {
    return {.code = ErrorCode::kUnavailable, .what = what};
  }

  void wait_for_something() {
    const pollfd nothing{.fd = -1, .events = 0, .revents = 0};
    std::array<pollfd, 5> watched{listens_ ? connection_.interest() : nothing,
                                  listens_ ? input_.interest() : nothing, output_.interest(),
                                  errors_.interest(), pollfd{signals_.get(), POLLIN, 0}};
    if (::poll(watched.data(), watched.size(), -1) < 0) return;
    input_.turn(watched[1].revents, connection_);
    output_.turn(watched[2].revents, connection_);
    errors_.turn(watched[3].revents, connection_);
    if (watched[4].revents != 0) pass_signal_on();
    if (!listens_) return;
    if (auto received = receive(watched[0].revents); !received) {
      end_with(std::move(received).error());
    }
  }

  void end_with(Result<int> code) {
    code_ = std::move(code);
    listens_ = false;
  }

  void pass_signal_on() {
    signalfd_siginfo caught{};
    if (::read(signals_.get(), &caught, sizeof caught) != sizeof caught) return;
    const int signal = static_cast<int>(caught.ssi_signo);
    // The connection is lost, so only the received output is left to print.
    if (!listens_) ::_exit(kSignalled + signal);
    connection_.send(SendSignal{signal});
  }

  Result<void> receive(short events) {
    MUSTER_CHECK(connection_.turn(events));
    while (listens_) {
      MUSTER_TRY(const std::optional<Frame> frame, connection_.next());
      if (!frame) break;
      MUSTER_CHECK(act_on(*frame));
    }
    if (listens_ && connection_.lost()) return lost("was lost before the command had ended");
    return {};
  }

  Result<void> act_on(const Frame& frame) {
    if (const auto* data = std::get_if<Data>(&frame)) {
      return sink(data->stream).take(data->bytes);
    } else if (const auto* end = std::get_if<StreamEnd>(&frame)) {
      sink(end->stream).end();
    } else if (const auto* grant = std::get_if<Grant>(&frame)) {
      input_.granted(grant->bytes);
    } else if (std::holds_alternative<HangUp>(frame)) {
      input_.hang_up();
    } else if (const auto* refusal = std::get_if<Refusal>(&frame)) {
      return Error{.code = ErrorCode::kRefused, .what = refusal->sentence};
    } else if (const auto* ended = std::get_if<Ended>(&frame)) {
      end_with(ended->signal == 0 ? ended->code : kSignalled + ended->signal);
    }
    return {};
  }

  Sink& sink(Stream stream) { return stream == Stream::kError ? errors_ : output_; }

  RshConnection connection_;
  std::string command_;
  Source input_;
  Sink output_;
  Sink errors_;
  UniqueFd signals_;
  bool listens_ = true;  ///< until it is known how the command ended
  Result<int> code_ = 0;
};

}  // namespace

namespace {

/// The names of pods come into Kubernetes' DNS when the pods start, and DNS servers keep for some
/// seconds that a name is missing.
constexpr std::chrono::seconds kNamePatience{15};
constexpr std::chrono::milliseconds kNamePause{250};

/// As getaddrinfo(); a name that is missing is looked up again.
int look_up_host(const Host& host, addrinfo*& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(host.port);
  const auto deadline = std::chrono::steady_clock::now() + kNamePatience;
  while (true) {
    const int failed = ::getaddrinfo(host.address.c_str(), port.c_str(), &hints, &found);
    const bool may_come = failed == EAI_NONAME || failed == EAI_AGAIN;
    if (!may_come || std::chrono::steady_clock::now() >= deadline) return failed;
    std::this_thread::sleep_for(kNamePause);
  }
}

}  // namespace

Result<UniqueFd> connect_to(const Host& host) {
  const std::string place = host.address + ":" + std::to_string(host.port);
  // Other sources are modules of the machine's C library, which may not match the one linked into
  // this program.
  ::__nss_configure_lookup("hosts", "files dns");
  addrinfo* found = nullptr;
  const int failed = look_up_host(host, found);
  if (failed != 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "cannot find " + host.address + ": " + ::gai_strerror(failed)};
  }
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  int number = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    UniqueFd socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && ::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0) {
      watch_for_silence(socket.get());
      return socket;
    }
    number = errno;
  }
  Error error = base::system_error("cannot connect to " + place, number);
  error.code = ErrorCode::kUnavailable;
  return error;
}

Result<int> run_far(UniqueFd socket, const Key& key, const std::string& command,
                    NearStreams streams) {
  return NearEnd(std::move(socket), key, command, std::move(streams)).run();
}

namespace {

/// The command and its three streams.
struct Running {
  base::Child child;
  Sink input;
  Source output;
  Source errors;
  std::optional<int> status;  ///< as waitpid(2) gives it
};

Result<Running> run(const std::string& command, const FarOptions& options) {
  MUSTER_TRY(Pipe input, make_pipe());
  MUSTER_TRY(Pipe output, make_pipe());
  MUSTER_TRY(Pipe errors, make_pipe());
  std::vector<std::string> argv{options.shell};
  if (!command.empty()) argv.insert(argv.end(), {"-c", command});
  if (::access(options.folder.c_str(), X_OK) != 0) {
    return base::system_error("cannot enter its working folder '" + options.folder + "'", errno);
  }
  if (::access(options.shell.c_str(), X_OK) != 0) {
    base::Error error = base::system_error("has no " + options.shell, errno);
    error.advice = "every MPI starts its ranks by a shell: use an image that contains one";
    return error;
  }
  MUSTER_TRY(base::Child child, base::spawn({.argv = std::move(argv),
                                             .program = options.shell,
                                             .environment = options.environment,
                                             .descriptors = {{input.reader.get(), STDIN_FILENO},
                                                             {output.writer.get(), STDOUT_FILENO},
                                                             {errors.writer.get(), STDERR_FILENO}},
                                             .new_session = true,
                                             .folder = options.folder}));
  return Running{.child = std::move(child),
                 .input = Sink(Stream::kInput, std::move(input.writer)),
                 .output = Source(Stream::kOutput, std::move(output.reader)),
                 .errors = Source(Stream::kError, std::move(errors.reader)),
                 .status = std::nullopt};
}

class FarEnd {
 public:
  FarEnd(UniqueFd socket, const Key& key, const FarOptions& options)
      : options_(options),
        connection_(End::kFar, std::move(socket), key),
        deadline_(Clock::now() + options.patience) {}

  void run() {
    while (!over_) wait_for_something();
    end_command();
  }

 private:
  void wait_for_something() {
    std::array<pollfd, 5> watched{connection_.interest(), nothing(), nothing(), nothing(),
                                  nothing()};
    if (running_) {
      watched[1] = running_->input.interest();
      watched[2] = running_->output.interest();
      watched[3] = running_->errors.interest();
      if (!running_->status) watched[4] = {running_->child.pidfd.get(), POLLIN, 0};
    }
    if (::poll(watched.data(), watched.size(), patience_left()) < 0) return;
    if (deadline_ && Clock::now() >= *deadline_) {
      over_ = true;
      return;
    }
    if (running_) {
      running_->input.turn(watched[1].revents, connection_);
      running_->output.turn(watched[2].revents, connection_);
      running_->errors.turn(watched[3].revents, connection_);
      if (watched[4].revents != 0) reap();
    }
    receive(watched[0].revents);
    report_end();
  }

  static pollfd nothing() { return {.fd = -1, .events = 0, .revents = 0}; }

  int patience_left() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  void receive(short events) {
    // A client without the key gets no answer, and its bytes are not logged.
    if (!connection_.turn(events)) over_ = true;
    while (!over_) {
      auto frame = connection_.next();
      if (!frame) over_ = true;
      if (!frame || !*frame) break;
      act_on(**frame);
    }
    if (connection_.lost()) over_ = true;
  }

  void act_on(const Frame& frame) {
    if (const auto* command = std::get_if<Command>(&frame)) return start(*command);
    if (!running_) return;
    if (const auto* data = std::get_if<Data>(&frame)) {
      if (!running_->input.take(data->bytes)) over_ = true;
    } else if (std::holds_alternative<StreamEnd>(frame)) {
      running_->input.end();
    } else if (const auto* signal = std::get_if<SendSignal>(&frame)) {
      if (!running_->status) ::kill(-running_->child.pid, signal->number);
    } else if (const auto* grant = std::get_if<Grant>(&frame)) {
      source(grant->stream).granted(grant->bytes);
    } else if (const auto* hang_up = std::get_if<HangUp>(&frame)) {
      source(hang_up->stream).hang_up();
    }
  }

  Source& source(Stream stream) {
    return stream == Stream::kError ? running_->errors : running_->output;
  }

  void start(const Command& command) {
    if (running_ || has_reported_end_) return;
    auto started = rsh::run(command.line, options_);
    if (!started) {
      const base::Error& error = started.error();
      send_last(Refusal{error.what + (error.advice.empty() ? "" : "; " + error.advice)});
      return;
    }
    running_.emplace(*std::move(started));
    deadline_.reset();
    // The rank census can do without the file, so the command runs anyway.
    if (!options_.reached.empty()) {
      [[maybe_unused]] const auto written = base::write_file(options_.reached, "1\n");
    }
  }

  void reap() {
    int status = 0;
    if (::waitpid(running_->child.pid, &status, WNOHANG) > 0) running_->status = status;
  }

  // Like sshd: processes that the command left in the background may still print.
  void report_end() {
    if (has_reported_end_ || !running_ || !running_->status) return;
    if (!running_->output.ended() || !running_->errors.ended()) return;
    const int status = *running_->status;
    send_last(WIFSIGNALED(status) ? Ended{.signal = WTERMSIG(status)}
                                  : Ended{.code = WEXITSTATUS(status)});
  }

  // The near end closes the connection after it has read the last frame. Closing it here, with
  // unread bytes of the near end, would reset it before that.
  void send_last(const Frame& frame) {
    connection_.send(frame);
    has_reported_end_ = true;
    deadline_ = Clock::now() + options_.patience;
  }

  void end_command() {
    if (!running_ || running_->status) return;
    ::kill(-running_->child.pid, SIGHUP);
    pollfd ended{.fd = running_->child.pidfd.get(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>(options_.grace.count()));
    ::kill(-running_->child.pid, SIGKILL);
    ::waitpid(running_->child.pid, nullptr, 0);
  }

  const FarOptions& options_;
  RshConnection connection_;
  std::optional<Running> running_;
  std::optional<Clock::time_point> deadline_;
  bool has_reported_end_ = false;
  bool over_ = false;
};

}  // namespace

void serve(UniqueFd socket, const Key& key, const FarOptions& options) {
  FarEnd(std::move(socket), key, options).run();
}

}  // namespace muster::engine::rsh
