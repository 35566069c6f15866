// Ctrl-C as a value instead of a death: while an Interrupts lives, SIGINT and SIGTERM wait on a
// descriptor, and a closed pipe is an error of write() instead of SIGPIPE.
//
// Construct before other threads start (the signal mask is a thread's own). Not copied.
#pragma once

#include <csignal>

#include "base/unique_fd.h"

namespace muster::cli {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable while a signal waits.
  int fd() const { return signals_.get(); }

  /// Takes one waiting signal; false when there is none.
  bool take();

 private:
  base::UniqueFd signals_;
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
};

}  // namespace muster::cli
