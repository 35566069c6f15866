#include "engine/shim/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"

namespace muster::engine {

namespace {

/// Field 4 of /proc/PID/stat; 0 where the process is gone.
pid_t parent_process_of(pid_t pid) {
  auto stat = base::read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return 0;
  const size_t bracket = stat->rfind(')');
  if (bracket == std::string::npos || bracket + 4 > stat->size()) return 0;
  return static_cast<pid_t>(std::strtol(stat->c_str() + bracket + 4, nullptr, 10));
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return all;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0) all.push_back(pid);
  }
  return all;
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : all_processes()) children.emplace(parent_process_of(pid), pid);
  std::vector<pid_t> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (auto [at, end] = children.equal_range(parent); at != end; ++at) {
      found.push_back(at->second);
      open.push_back(at->second);
    }
  }
  return found;
}

std::set<pid_t> sessions_of(const std::vector<pid_t>& processes) {
  std::set<pid_t> sessions;
  for (const pid_t pid : processes) {
    if (const pid_t session = ::getsid(pid); session > 0) sessions.insert(session);
  }
  sessions.erase(::getsid(0));
  return sessions;
}

// What is forked meanwhile is in the session, too: over when a look at all finds nothing new.
void kill_sessions(const std::set<pid_t>& sessions) {
  std::set<pid_t> killed;
  bool found = !sessions.empty();
  while (found) {
    found = false;
    for (const pid_t pid : all_processes()) {
      if (sessions.count(::getsid(pid)) == 0 || !killed.insert(pid).second) continue;
      ::kill(pid, SIGKILL);
      found = true;
    }
  }
}

base::UniqueFd watch_children() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return base::UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

void drain_signals(const base::UniqueFd& signals) {
  signalfd_siginfo ignored{};
  while (::read(signals.get(), &ignored, sizeof ignored) > 0) continue;
}

// A process may fork between being listed and being killed; its orphan then becomes a child of this
// process, so the loop ends only when there are no children left.
void kill_descendants() {
  // Mostly nothing is left: that is asked first, for reading /proc costs more than all the rest.
  int options = WNOHANG;
  while (::waitpid(-1, nullptr, options) >= 0 || errno != ECHILD) {
    for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGKILL);
    options = 0;
  }
}

}  // namespace muster::engine
