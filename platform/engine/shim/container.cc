#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files.h"
#include "engine/shim/follow.h"
#include "engine/shim/modes.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

/// How long the records may take to be read after a stop: an engine that stops a task which has
/// just ended may not have read the end yet.
constexpr std::chrono::milliseconds kLastReadPatience{5000};

/// Writes the task's records to this process's standard output, on a thread of its own: a slow
/// reader, or none, delays nothing else.
class RecordWriter {
 public:
  explicit RecordWriter(const TaskFolder& folder)
      : output_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)), thread_([this, folder] {
          follow({.folder = folder, .output = output_.get()});
          output_.reset();
          ::eventfd_write(done_.get(), 1);
        }) {
    thread_.detach();  // it may wait forever for a reader; it ends with the process
  }

  /// Readable once all records are written.
  int done() const { return done_.get(); }

 private:
  UniqueFd output_;
  UniqueFd done_{::eventfd(0, EFD_CLOEXEC)};
  std::thread thread_;
};

UniqueFd watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGQUIT, SIGCHLD}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// How long the engine may take to put the task's files into the container: longer than an engine
/// ever takes. A server that is killed meanwhile leaves the container to the next one, which
/// removes it.
constexpr std::chrono::minutes kFilesPatience{10};

/// Reaps children and returns whether SIGTERM or SIGQUIT has arrived.
bool is_stopped(const UniqueFd& signals) {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
  signalfd_siginfo info{};
  while (::read(signals.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) return true;
  }
  return false;
}

enum class Arrival { kComplete, kLate, kStopped };

Arrival await_files(const TaskFolder& folder, const UniqueFd& signals) {
  using Steady = std::chrono::steady_clock;
  const auto last = Steady::now() + kFilesPatience;
  FolderWatch watch;
  watch.add(folder.path);
  while (!std::filesystem::exists(folder.complete())) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last - Steady::now());
    if (left.count() <= 0) return Arrival::kLate;
    watch.take(folder.path);
    if (std::filesystem::exists(folder.complete())) break;  // before the changes were taken
    std::array<pollfd, 2> polled{{{watch.descriptor(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) < 0) continue;
    if (polled[1].revents != 0 && is_stopped(signals)) return Arrival::kStopped;
  }
  return Arrival::kComplete;
}

void let_go_of_output() {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing.get(), fd);
}

/// Waits for SIGTERM or SIGQUIT, and reaps children meanwhile.
void await_stop(const UniqueFd& signals) {
  while (!is_stopped(signals)) {
    pollfd watched{signals.get(), POLLIN, 0};
    ::poll(&watched, 1, -1);
  }
}

/// Reports the refusal twice: in the folder, for followers, and on standard error, for a user who
/// starts the container by hand.
void refuse(const TaskFolder& folder, const base::Error& error) {
  std::fprintf(stderr, "muster-shim: %s\n", error.what.c_str());
  const auto written = base::write_file(folder.refused(), refusal_text(error));
  if (!written) std::fprintf(stderr, "muster-shim: %s\n", written.error().what.c_str());
}

}  // namespace

int run_container(const char* task_folder) {
  const TaskFolder folder{task_folder};
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // in a test, this process is not process 1
  // Before the first thread, so that every thread has the signals blocked.
  const UniqueFd signals = watch_signals();
  const RecordWriter writer(folder);
  let_go_of_output();
  const auto report = [&](const base::Error* refusal) {
    if (refusal != nullptr) refuse(folder, *refusal);
  };
  const Arrival files = await_files(folder, signals);
  if (files == Arrival::kComplete) {
    hold_task(folder, {.report = report, .is_process_one = true});
  } else {
    const base::Error error{.code = base::ErrorCode::kTimeout,
                            .what = files == Arrival::kLate ? "its files did not arrive"
                                                            : "it was stopped before it started"};
    report(&error);
  }
  // A stop that arrived together with the task's end is still unread, and counts here.
  if (files != Arrival::kStopped) await_stop(signals);
  pollfd done{writer.done(), POLLIN, 0};
  ::poll(&done, 1, static_cast<int>(kLastReadPatience.count()));
  std::fflush(stderr);
  ::_exit(0);
}

}  // namespace muster::engine
