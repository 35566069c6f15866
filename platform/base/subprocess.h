// The one way a child process is started: every descriptor from 3 up is closed except those that
// are handed over, so no socket or log of the server leaks into a job; the child is watched by a
// pidfd, never by SIGCHLD.
//
// Thread-safe. The caller owns what is returned; dropping a Child neither kills nor reaps it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::base {

struct SpawnOptions {
  std::vector<std::string> argv;
  std::string program;  ///< what to execute; empty: argv[0], searched in this process's PATH
  std::vector<std::string> environment;  ///< NAME=value; the whole environment of the child
  /// descriptor here -> number there; 0, 1 and 2 are /dev/null unless named here
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = false;          ///< setsid: the child outlives the terminal and this process
  std::vector<int> blocked_signals;  ///< held back until the child itself takes them
  std::string folder;                ///< working directory of the child; empty: this process's
  std::string terminal;              ///< a terminal's path: it is the child's 0, 1 and 2, and with
                                     ///< new_session the one that controls it
};

struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;  ///< becomes readable when the process ends
};

Result<Child> spawn(const SpawnOptions& options);

/// Where a shell with this environment would find `name`: a name with a slash is a path of its own.
/// kNotFound where there is none, kRefused where there is only one that cannot be executed.
Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment);

/// Waits for a child of this process and reaps it; the status as waitpid(2) gives it.
Result<int> wait_for(const Child& child);

/// A pidfd of a process that need not be a child. kNotFound where there is none.
Result<UniqueFd> open_pidfd(pid_t pid);

/// Sends `signal` through a pidfd, so never to a stranger who got the same pid.
Result<void> send_signal(const UniqueFd& pidfd, int signal);

/// This process's environment as NAME=value.
std::vector<std::string> current_environment();

}  // namespace muster::base
