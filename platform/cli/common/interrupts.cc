#include "cli/common/interrupts.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace muster::cli {

Interrupts::Interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) {
    // A shell without job control has its background commands ignore Ctrl-C, which is not for them.
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
  signals_.reset(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));

  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Interrupts::~Interrupts() {
  while (take()) {
  }
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

bool Interrupts::take() {
  signalfd_siginfo info{};
  return ::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

}  // namespace muster::cli
