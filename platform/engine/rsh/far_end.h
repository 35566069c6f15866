// The far end of a remote shell: greets whoever has connected, and runs the command of those who
// have the key of the job.
//
// One thread; it returns when all is over. The command is ended (SIGHUP, then SIGKILL) when the
// near end is gone before it has ended by itself.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::rsh {

struct FarOptions {
  std::string folder;                    ///< where commands run
  std::vector<std::string> environment;  ///< what they find there
  std::string shell = "/bin/sh";
  std::string reached;  ///< a file that is written once a command runs; empty: none
  /// Until whoever has connected has shown the key and said what to run.
  std::chrono::milliseconds patience{10'000};
  /// Between SIGHUP and SIGKILL, where the near end is gone.
  std::chrono::milliseconds grace{5'000};
};

/// Answers on `socket`.
void serve(base::UniqueFd socket, const Key& key, const FarOptions& options);

}  // namespace muster::engine::rsh
