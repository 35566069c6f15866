// Sockets that lie in a folder, close-on-exec and non-blocking. A path of a job's folder may be
// longer than an address can hold, so the folder is named by a descriptor.
//
// I/O; thread-safe, but that those that make one set the umask of the process for a moment.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// Makes the socket `name` in `folder` (SOCK_SEQPACKET), 0600 from the start.
base::Result<base::UniqueFd> listen_in(const std::string& folder, const std::string& name);

/// The same for datagrams.
base::Result<base::UniqueFd> bind_in(const std::string& folder, const std::string& name);

/// kNotFound: there is none; kUnavailable: nobody listens (any more).
base::Result<base::UniqueFd> connect_in(const std::string& folder, const std::string& name);

}  // namespace muster::engine
