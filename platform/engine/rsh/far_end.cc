#include "engine/rsh/far_end.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/pipe.h"
#include "engine/rsh/connection.h"
#include "engine/rsh/streams.h"

namespace muster::engine::rsh {

using base::Result;
using base::UniqueFd;

using Clock = std::chrono::steady_clock;

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
    error.advice = "every MPI starts its ranks by a shell: the image needs one";
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
    hear(watched[0].revents);
    tell_end();
  }

  static pollfd nothing() { return {.fd = -1, .events = 0, .revents = 0}; }

  int patience_left() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  void hear(short events) {
    // Whoever has not shown the key is told nothing, and what they said is noted nowhere.
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
    if (running_ || told_) return;
    auto started = rsh::run(command.line, options_);
    if (!started) {
      const base::Error& error = started.error();
      say_last(Refusal{error.what + (error.advice.empty() ? "" : "; " + error.advice)});
      return;
    }
    running_.emplace(*std::move(started));
    deadline_.reset();
    // The census does without it: the command runs all the same.
    if (!options_.reached.empty()) {
      [[maybe_unused]] const auto written = base::write_file(options_.reached, "1\n");
    }
  }

  void reap() {
    int status = 0;
    if (::waitpid(running_->child.pid, &status, WNOHANG) > 0) running_->status = status;
  }

  // As with sshd: what the command left running in the background may still print.
  void tell_end() {
    if (told_ || !running_ || !running_->status) return;
    if (!running_->output.ended() || !running_->errors.ended()) return;
    const int status = *running_->status;
    say_last(WIFSIGNALED(status) ? Ended{.signal = WTERMSIG(status)}
                                 : Ended{.code = WEXITSTATUS(status)});
  }

  // The near end closes the connection when it has read it. Closed here, with words of the other
  // end unread, it would be broken off before that.
  void say_last(const Frame& frame) {
    connection_.send(frame);
    told_ = true;
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
  Connection connection_;
  std::optional<Running> running_;
  std::optional<Clock::time_point> deadline_;
  bool told_ = false;  ///< how it ended
  bool over_ = false;
};

}  // namespace

void serve(UniqueFd socket, const Key& key, const FarOptions& options) {
  FarEnd(std::move(socket), key, options).run();
}

}  // namespace muster::engine::rsh
