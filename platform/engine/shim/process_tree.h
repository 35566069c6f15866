// Children and what becomes of them, without SIGCHLD handlers.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.h"

namespace muster::engine {

/// Blocks SIGCHLD and returns a non-blocking descriptor that tells of them
/// (signalfd). Children start with an empty mask all the same: base::spawn resets it.
base::UniqueFd watch_children();

/// The processes below this one, parents before children. A process that forks meanwhile may
/// escape.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Kills every descendant of this process until none is left, and reaps them. REQUIRES: this
/// process is a child subreaper (or process 1), so that orphans come to it.
void kill_descendants();

}  // namespace muster::engine
