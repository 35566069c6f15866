#include "service/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace muster::service {

namespace {

/// Standard input is a terminal that hung up: whatever is asked of it fails with EIO.
bool terminal_is_gone() {
  termios ignored{};
  return ::tcgetattr(STDIN_FILENO, &ignored) != 0 && errno == EIO;
}

}  // namespace

base::UniqueFd watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return base::UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

Wish next_wish(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof(info)) != sizeof(info)) return Wish::kNone;
  if (info.ssi_signo != SIGHUP) return Wish::kEnd;
  return terminal_is_gone() ? Wish::kEnd : Wish::kReload;
}

}  // namespace muster::service
