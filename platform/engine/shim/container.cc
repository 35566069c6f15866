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
#include <string>
#include <thread>

#include "base/files.h"
#include "engine/shim/follow.h"
#include "engine/shim/modes.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

/// Whoever stops a task that has just ended may not have read that yet.
constexpr std::chrono::milliseconds kLastReadPatience{5000};

/// Tells on what was this process's standard output, on a thread of its own: whoever reads slowly
/// there, or not at all, holds up nothing else.
class Teller {
 public:
  explicit Teller(const TaskFolder& folder)
      : output_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)), thread_([this, folder] {
          follow({.folder = folder, .output = output_.get()});
          output_.reset();
          ::eventfd_write(done_.get(), 1);
        }) {
    thread_.detach();  // it may wait for a reader that never comes: it ends with the process
  }

  /// Readable when everything was told.
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

void let_go_of_output() {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing.get(), fd);
}

/// Until one of the two comes; children are reaped meanwhile.
void await_stop(const UniqueFd& signals) {
  while (true) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    pollfd watched{signals.get(), POLLIN, 0};
    if (::poll(&watched, 1, -1) < 0) continue;
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) return;
    }
  }
}

/// In the folder for whoever follows, and on standard error for whoever started this by hand.
void refuse(const TaskFolder& folder, const base::Error& error) {
  std::fprintf(stderr, "muster-shim: %s\n", error.what.c_str());
  const auto told = base::write_file(folder.refused(), refusal_text(error));
  if (!told) std::fprintf(stderr, "muster-shim: %s\n", told.error().what.c_str());
}

}  // namespace

int run_container(const char* task_folder) {
  const TaskFolder folder{task_folder};
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // where it is not process 1: under a test
  // Before there are threads: none of them is to take a signal.
  const UniqueFd signals = watch_signals();
  const Teller teller(folder);
  let_go_of_output();
  const auto told = [&](const base::Error* refusal) {
    if (refusal != nullptr) refuse(folder, *refusal);
  };
  hold_task(folder, {.told = told, .is_process_one = true});
  // A stop that came with the end, and that nobody has heeded, counts as one that came after it.
  await_stop(signals);
  pollfd done{teller.done(), POLLIN, 0};
  ::poll(&done, 1, static_cast<int>(kLastReadPatience.count()));
  std::fflush(stderr);
  ::_exit(0);
}

}  // namespace muster::engine
