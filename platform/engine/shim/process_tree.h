// Children and what becomes of them, without SIGCHLD handlers.
#pragma once

#include "base/unique_fd.h"

namespace muster::engine {

/// Blocks SIGCHLD and returns a non-blocking descriptor that tells of them
/// (signalfd). Children start with an empty mask all the same: base::spawn resets it.
base::UniqueFd watch_children();

/// Kills every descendant of this process until none is left, and reaps them. REQUIRES: this
/// process is a child subreaper (or process 1), so that orphans come to it.
void kill_descendants();

}  // namespace muster::engine
