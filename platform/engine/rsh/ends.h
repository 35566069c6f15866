// The two ends of a remote shell. The near end runs a command at the far end and behaves towards
// its caller as if the command ran here. The far end accepts a connection and runs the command of a
// client that has the key of the job.
//
// Blocking; one thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/arguments.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::rsh {

struct NearStreams {
  base::UniqueFd input;  ///< none: the command gets an empty input
  base::UniqueFd output;
  base::UniqueFd errors;
  base::UniqueFd signals;  ///< a signalfd whose signals are forwarded; none: no signals
};

/// A connection to the host's remote shell. kUnavailable, naming the address.
base::Result<base::UniqueFd> connect_to(const Host& host);

/// Runs a command at the far end. Returns the exit code as a shell shows it (128 + signal).
/// kUnavailable: the far end is gone, or is not a muster-rsh; kRefused: it has another key, or
/// cannot run the command.
base::Result<int> run_far(base::UniqueFd socket, const Key& key, const std::string& command,
                          NearStreams streams);

struct FarOptions {
  std::string folder;                    ///< the working folder of commands
  std::vector<std::string> environment;  ///< the environment of commands
  std::string shell = "/bin/sh";
  std::string reached;  ///< a file that is created when a command starts; empty: none
  /// The time limit for a client to prove that it has the key and to send its command.
  std::chrono::milliseconds patience{10'000};
  /// The pause between SIGHUP and SIGKILL after the near end has disconnected.
  std::chrono::milliseconds grace{5'000};
};

/// Serves one client on `socket`. If the client disconnects first, the command gets SIGHUP and then
/// SIGKILL.
void serve(base::UniqueFd socket, const Key& key, const FarOptions& options);

}  // namespace muster::engine::rsh
