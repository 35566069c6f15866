#include "engine/program_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

namespace {

Result<std::pair<UniqueFd, UniqueFd>> pipe_from_program() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

/// In memory: the text need not be written while the program reads, and is never in a file.
Result<UniqueFd> input_of(const std::string& text) {
  UniqueFd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) return base::system_error("cannot make a file in memory", errno);
  MUSTER_CHECK(base::write_all(file.get(), text));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) {
    return base::system_error("cannot go back in a file in memory", errno);
  }
  return file;
}

/// Reads all available bytes; false at the end.
bool drain_pipe(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    text.append(buffer.data(), static_cast<size_t>(count));
    // The rest waits in the pipe: a program cannot fill this process's memory.
    if (text.size() > ProgramRunner::kMostOutput) return true;
  }
}

int exit_code_in(const Result<int>& status) {
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

}  // namespace

class ProgramRunner::Run {
 public:
  static Result<std::unique_ptr<Run>> start(base::EventLoop& loop, const ProgramPlan& plan,
                                            Then then, std::function<void(Run*)> ended) {
    base::SpawnOptions options;
    options.argv = plan.argv;
    options.environment = plan.environment;
    MUSTER_TRY(const UniqueFd input, input_of(plan.input));
    MUSTER_TRY(auto output, pipe_from_program());
    MUSTER_TRY(auto errors, pipe_from_program());
    options.descriptors = {{input.get(), STDIN_FILENO},
                           {output.second.get(), STDOUT_FILENO},
                           {errors.second.get(), STDERR_FILENO}};
    // Ctrl-C in the terminal of a foreground server must not reach the program.
    options.new_session = true;
    MUSTER_TRY(base::Child child, base::spawn(options));
    std::unique_ptr<Run> run(new Run);
    run->child_ = std::move(child);
    run->then_ = std::move(then);
    run->ended_ = std::move(ended);
    run->output_.end = std::move(output.first);
    run->errors_.end = std::move(errors.first);
    run->watch(loop, plan.patience);
    return run;
  }

  ~Run() {
    if (is_reaped_) return;
    static_cast<void>(base::send_signal(child_.pidfd, SIGKILL));
    static_cast<void>(base::wait_for(child_));
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// REQUIRES: the program has ended.
  Then take_listener() { return std::move(then_); }
  ProgramEnd take_end() { return std::move(end_); }

 private:
  struct Pipe {
    UniqueFd end;
    base::EventLoop::Interest interest;  ///< after `end`: destroyed first
    std::string text;
  };

  Run() = default;

  void watch(base::EventLoop& loop, std::chrono::milliseconds patience) {
    output_.interest = loop.when_readable(output_.end.get(), [this] { read_output(); });
    errors_.interest = loop.when_readable(errors_.end.get(), [this] { read_errors(); });
    over_ = loop.when_readable(child_.pidfd.get(), [this] { is_over(); });
    late_ = loop.after(patience, [this] {
      end_.was_late = true;
      static_cast<void>(base::send_signal(child_.pidfd, SIGKILL));
    });
  }

  void read_output() {
    if (!drain_pipe(output_.end.get(), output_.text)) output_.interest.reset();
    if (output_.text.size() <= kMostOutput) return;
    end_.was_cut = true;
    output_.interest.reset();
    static_cast<void>(base::send_signal(child_.pidfd, SIGKILL));
  }

  void read_errors() {
    if (!drain_pipe(errors_.end.get(), errors_.text)) errors_.interest.reset();
    std::string& text = errors_.text;
    if (text.size() > kMostErrors) text.erase(0, text.size() - kMostErrors);
  }

  void is_over() {
    over_.reset();
    late_.reset();
    end_.code = exit_code_in(base::wait_for(child_));
    is_reaped_ = true;
    // Its own children may still hold the pipe open: they are not waited for.
    if (!end_.was_cut) read_output();
    read_errors();
    end_.output = std::move(output_.text);
    end_.errors = std::move(errors_.text);
    const auto ended = ended_;
    ended(this);  // destroys this
  }

  base::Child child_;
  Then then_;
  std::function<void(Run*)> ended_;
  Pipe output_;
  Pipe errors_;
  ProgramEnd end_;
  bool is_reaped_ = false;
  base::EventLoop::Interest over_;
  base::EventLoop::Interest late_;
};

ProgramRunner::ProgramRunner(base::EventLoop& loop, size_t at_once)
    : loop_(loop), at_once_(std::max<size_t>(at_once, 1)) {}

ProgramRunner::~ProgramRunner() {
  *alive_ = false;
}

void ProgramRunner::run(ProgramPlan plan, Then then) {
  waiting_.push_back({std::move(plan), std::move(then)});
  if (is_posted_) return;
  is_posted_ = true;
  loop_.post([this, alive = alive_] {
    if (!*alive) return;
    is_posted_ = false;
    start_next();
  });
}

void ProgramRunner::start_next() {
  const std::shared_ptr<bool> alive = alive_;
  while (*alive && running_.size() < at_once_ && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    auto started = Run::start(loop_, next.plan, next.then, [this](Run* run) { end(run); });
    if (started) {
      running_.push_back(*std::move(started));
    } else {
      next.then(started.error());  // may destroy the runner
    }
  }
}

void ProgramRunner::end(Run* run) {
  const Then then = run->take_listener();
  ProgramEnd how = run->take_end();
  running_.remove_if([run](const std::unique_ptr<Run>& each) { return each.get() == run; });
  const std::shared_ptr<bool> alive = alive_;
  then(std::move(how));  // may destroy the runner
  if (*alive) start_next();
}

}  // namespace muster::engine
