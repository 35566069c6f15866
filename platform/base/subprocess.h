// The only way to start a child process: every descriptor from 3 on is closed except the listed
// ones, so no socket or log of the server leaks into a job; a pidfd, never SIGCHLD, reports the
// child's end.
//
// Thread-safe. The caller owns the result; destroying a Child neither kills nor reaps the process.
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
  std::string program;  ///< the program to execute; empty: argv[0], searched in this process's PATH
  std::vector<std::string> environment;  ///< NAME=value; the whole environment of the child
  /// Descriptor here -> number in the child; 0, 1 and 2 are /dev/null unless listed.
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = false;          ///< setsid: the child outlives the terminal and this process
  std::vector<int> blocked_signals;  ///< blocked until the child itself unblocks them
  std::string folder;                ///< working directory of the child; empty: this process's
  /// The path of a terminal for the child's descriptors 0, 1 and 2; with new_session, its controlling
  /// terminal.
  std::string terminal;
};

struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;  ///< becomes readable when the process ends
};

Result<Child> spawn(const SpawnOptions& options);

/// The path at which a shell with this environment finds `name`; a name with a slash is itself a
/// path. kNotFound: it does not exist; kRefused: it is not executable.
Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment);

/// Waits for a child of this process and reaps it; returns the status of waitpid(2).
Result<int> wait_for(const Child& child);

/// A pidfd of any process. kNotFound: there is no such process.
Result<UniqueFd> open_pidfd(pid_t pid);

/// Sends `signal` through a pidfd, so never to another process that got the same pid.
Result<void> send_signal(const UniqueFd& pidfd, int signal);

/// This process's environment as NAME=value.
std::vector<std::string> current_environment();

}  // namespace muster::base
