// The near end of a remote shell: has a command run at the far end of a connection, and is to
// whoever started it as if the command ran here.
//
// One thread; it returns when all is over.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/rsh/hosts.h"
#include "engine/rsh/secure_channel.h"

namespace muster::engine::rsh {

struct NearStreams {
  base::UniqueFd input;  ///< none: the command finds its input at its end
  base::UniqueFd output;
  base::UniqueFd errors;
  base::UniqueFd signals;  ///< a signalfd: these are sent on; none: no signals are
};

/// A connection to where it answers. kUnavailable with the address.
base::Result<base::UniqueFd> connect_to(const Host& host);

/// Runs it; the exit code as a shell shows it (128 and a signal). kUnavailable: the far end is gone
/// or none of ours; kRefused: it has another key, or cannot run the command.
base::Result<int> run_far(base::UniqueFd socket, const Key& key, const std::string& command,
                          NearStreams streams);

}  // namespace muster::engine::rsh
