// Children and what becomes of them, without SIGCHLD handlers.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "base/unique_fd.h"

namespace muster::engine {

/// Blocks SIGCHLD and returns a non-blocking descriptor that tells of them
/// (signalfd). Children start with an empty mask all the same: base::spawn resets it.
base::UniqueFd watch_children();

/// Takes what a non-blocking signalfd tells, and forgets it.
void drain_signals(const base::UniqueFd& signals);

/// The processes below this one, parents before children. A process that forks meanwhile may
/// escape.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Kills every descendant of this process until none is left, and reaps them. REQUIRES: this
/// process is a child subreaper (or process 1), so that orphans come to it.
void kill_descendants();

/// The sessions that these processes are in, but for this process's own.
std::set<pid_t> sessions_of(const std::vector<pid_t>& processes);

/// Kills all that is in these sessions. For orphans in a process tree that is not this process's:
/// they come to its process 1, but stay in their session.
void kill_sessions(const std::set<pid_t>& sessions);

}  // namespace muster::engine
