// The processes of one task, found in /proc: those below the shim's child, daemons that have left
// their session included, and the programs of exec, which are in the sandbox but not below it.
//
// Owned and called by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

class TaskProcesses {
 public:
  struct Process {
    pid_t pid = 0;
    std::string status;  ///< /proc/PID/status
  };

  TaskProcesses() = default;
  /// `root`: all processes below it are the task's. `proc`: another folder in tests.
  explicit TaskProcesses(pid_t root, std::filesystem::path proc = "/proc");

  /// A process that is forked meanwhile may be missing.
  std::vector<Process> find();

  pid_t root() const { return root_; }
  const std::filesystem::path& proc() const { return proc_; }

 private:
  void add_programs_of_exec(std::vector<Process>& all);
  std::vector<pid_t> perhaps_new_processes();

  pid_t root_ = 0;
  std::filesystem::path proc_ = "/proc";
  std::set<pid_t> beside_;       ///< processes in the sandbox that are not below root_
  std::set<pid_t> strangers_;    ///< new processes that are not in the sandbox
  std::deque<pid_t> last_pids_;  ///< the newest process at each of the last looks
  int looks_beside_ = 0;
};

/// The number of threads in the text of /proc/PID/status.
uint64_t threads_in(std::string_view status);

/// The state of a process or thread in the text of its file stat: 'R' runs or waits for a CPU, 'T' is
/// stopped, 'Z' has ended; 0: the text is malformed.
char state_in(std::string_view stat);

}  // namespace muster::engine
