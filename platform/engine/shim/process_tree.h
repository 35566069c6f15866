// The processes of a task: finding them in /proc, waiting for them, and killing all of them.
//
// I/O; thread-safe.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

// --- files of /proc
//
// The tree of processes, as the files of /proc have it.
//
// I/O; thread-safe. `proc` is another folder in tests.

/// A file of /proc, which has no size; empty where it is not there or nobody may read it.
std::string read_proc_file(const std::filesystem::path& path);

/// Off the front of a text; empty, or 0, where there is none.
std::string_view take_word(std::string_view& text);
uint64_t take_number(std::string_view& text);

/// The name of a process, as its "stat" has it: at most 15 bytes of it.
std::string_view name_in_stat(std::string_view stat);

/// The entries of a folder that are numbers.
std::vector<pid_t> numbered_entries(const std::filesystem::path& folder);

/// Who is whose child.
class ProcessChildren {
 public:
  /// Where the kernel keeps no lists of children (`root`'s is missing), all processes are asked for
  /// their parents, once.
  ProcessChildren(std::filesystem::path proc, pid_t root);

  /// `threads`: how many the process has.
  std::vector<pid_t> of(pid_t pid, uint64_t threads) const;

 private:
  std::filesystem::path proc_;
  bool listed_;
  std::multimap<pid_t, pid_t> all_;
};

// --- children and sessions
//
// Children and what becomes of them, without SIGCHLD handlers.

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

/// The inner half of a task, by the pid of its shim. kConflict: there is none (any more).
base::Result<pid_t> inner_half_of(pid_t shim);

// --- programs of the task
//
// What others run in a task through its remote shell, which is sshd or Muster's own: the ranks of a
// launcher, for the most part.

/// The living processes below this one, but for those of the remote shell itself, whose program is
/// `shell`.
std::vector<pid_t> reached_programs(std::string_view shell);

}  // namespace muster::engine
