// The socket on which a task answers ssh.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// Binds and listens. kConflict where the address is taken, naming it.
base::Result<base::UniqueFd> listen_on(const std::string& address, int port);

}  // namespace muster::engine
