// The processes of a task: finding them in /proc, waiting for them, and killing all of them. No
// SIGCHLD handlers.
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

/// Reads a file of /proc, whose size the kernel reports as 0. Empty: the file does not exist or may
/// not be read.
std::string read_proc_file(const std::filesystem::path& path);

/// Removes the first word or number from `text` and returns it. Empty, or 0: there is none.
std::string_view take_word(std::string_view& text);
uint64_t take_number(std::string_view& text);

/// The name of a process, from /proc/PID/stat: at most 15 bytes.
std::string_view name_in_stat(std::string_view stat);

/// The entries of a folder whose names are numbers.
std::vector<pid_t> numbered_entries(const std::filesystem::path& folder);

/// The children of processes.
class ProcessChildren {
 public:
  /// A kernel without lists of children (CONFIG_PROC_CHILDREN) has no such list for `root`: then
  /// the constructor reads the parent of each process on the machine. `proc`: another folder in
  /// tests.
  ProcessChildren(std::filesystem::path proc, pid_t root);

  /// `threads`: the number of threads of the process. The kernel lists the children of each thread.
  std::vector<pid_t> of(pid_t pid, uint64_t threads) const;

 private:
  std::filesystem::path proc_;
  bool listed_;
  std::multimap<pid_t, pid_t> all_;
};

// --- children and sessions

/// Blocks SIGCHLD in this process and returns a non-blocking signalfd for it. base::spawn() resets
/// the signal mask of children.
base::UniqueFd watch_children();

/// Reads a non-blocking signalfd until it is empty.
void drain_signals(const base::UniqueFd& signals);

/// All processes below `ancestor`, parents before children. A process that is forked meanwhile may
/// be missing.
std::vector<pid_t> descendants_of(pid_t ancestor);

/// Kills and reaps all descendants of this process. REQUIRES: this process is a child subreaper (or
/// process 1), so that it becomes the parent of orphans.
void kill_descendants();

/// The sessions of these processes, except this process's own.
std::set<pid_t> sessions_of(const std::vector<pid_t>& processes);

/// All processes of these sessions.
std::set<pid_t> processes_in(const std::set<pid_t>& sessions);
/// Kills all processes of these sessions. For orphans in another process tree: their parent is that
/// tree's process 1, but they stay in their session.
void kill_sessions(const std::set<pid_t>& sessions);

// --- programs of a task

/// The pid of a task's inner half, by the pid of its shim. kConflict: the task is ending.
base::Result<pid_t> inner_half_of(pid_t shim);

/// The programs that users and launchers run in the task through its remote shell, mostly ranks:
/// all processes below this one that are alive, except those of the remote shell itself. `shell`:
/// the program of the remote shell, sshd or Muster's own; empty: the task has none.
std::vector<pid_t> reached_programs(std::string_view shell);

/// All processes of this process's PID namespace that are alive, except this process. Those that
/// another process brought in (exec.h) are not below this one. Processes with a controlling terminal
/// are left out: they belong to a session of a user (`muster exec -it`), whose shell ignores SIGTERM.
/// REQUIRES: /proc is that of the namespace.
std::vector<pid_t> others_in_namespace();

}  // namespace muster::engine
