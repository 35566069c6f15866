#include "engine/shim/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

// --- files of /proc

namespace {

void append_children(const fs::path& thread, std::vector<pid_t>& children) {
  const std::string text = read_proc_file(thread / "children");
  std::string_view rest = text;
  while (const auto child = base::number_of<pid_t>(take_word(rest))) children.push_back(*child);
}

std::multimap<pid_t, pid_t> children_of_all(const fs::path& proc) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numbered_entries(proc)) {
    const auto read = parse_stat(read_proc_file(proc / std::to_string(pid) / "stat"));
    if (read) children.emplace(read->second.parent, pid);
  }
  return children;
}

bool has_lists(const fs::path& proc, pid_t root) {
  const std::string name = std::to_string(root);
  std::error_code error;
  return fs::exists(proc / name / "task" / name / "children", error);
}

}  // namespace

// The kernel returns a short file of /proc whole with one read(2), so its content is consistent.
std::string read_proc_file(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

uint64_t take_number(std::string_view& text) {
  return base::number_of<uint64_t>(take_word(text)).value_or(0);
}

std::string_view name_in_stat(std::string_view stat) {
  const size_t begin = stat.find('(');
  const size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return stat.substr(begin + 1, end - begin - 1);
}

std::vector<pid_t> numbered_entries(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    if (const auto number = base::number_of<pid_t>(entry->path().filename().string())) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

ProcessChildren::ProcessChildren(fs::path proc, pid_t root)
    : proc_(std::move(proc)), listed_(has_lists(proc_, root)) {
  if (!listed_) all_ = children_of_all(proc_);
}

// The kernel lists a child with the thread that forked it.
std::vector<pid_t> ProcessChildren::of(pid_t pid, uint64_t threads) const {
  std::vector<pid_t> children;
  if (!listed_) {
    const auto [first, end] = all_.equal_range(pid);
    for (auto at = first; at != end; ++at) children.push_back(at->second);
    return children;
  }
  const fs::path tasks = proc_ / std::to_string(pid) / "task";
  if (threads == 1) {
    append_children(tasks / std::to_string(pid), children);
  } else {
    for (const pid_t thread : numbered_entries(tasks)) {
      append_children(tasks / std::to_string(thread), children);
    }
  }
  return children;
}

// --- children and sessions

namespace {

/// 1 for a process that is gone.
uint64_t threads_of(const fs::path& proc, pid_t pid) {
  const auto read = parse_stat(read_proc_file(proc / std::to_string(pid) / "stat"));
  return read ? read->second.threads : 1;
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

// With the lists of children, the cost depends on the tree alone. A machine with thousands of tasks has
// tens of thousands of processes, and each task that ends looks for its own.
std::vector<pid_t> descendants_of(pid_t ancestor) {
  const fs::path proc = "/proc";
  const ProcessChildren children(proc, ancestor);
  std::vector<pid_t> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (const pid_t child : children.of(parent, threads_of(proc, parent))) {
      found.push_back(child);
      open.push_back(child);
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

std::set<pid_t> processes_in(const std::set<pid_t>& sessions) {
  std::set<pid_t> found;
  if (sessions.empty()) return found;
  for (const pid_t pid : all_processes()) {
    if (sessions.count(::getsid(pid)) != 0) found.insert(pid);
  }
  return found;
}

// A process that is forked meanwhile is in the session, too. So the loop ends only when a look at
// all processes finds no new one.
void kill_sessions(const std::set<pid_t>& sessions) {
  std::set<pid_t> killed;
  bool found = !sessions.empty();
  while (found) {
    found = false;
    for (const pid_t pid : processes_in(sessions)) {
      if (!killed.insert(pid).second) continue;
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

// A process may fork after it was listed and before it is killed. The orphan then becomes a child
// of this process, so the loop ends only when this process has no children. The list of this process's
// own children is complete: it loses a child only when this process reaps it.
void kill_descendants() {
  // Usually there is nothing to kill. waitpid() reports that cheaply; reading /proc is expensive.
  int options = WNOHANG;
  while (::waitpid(-1, nullptr, options) >= 0 || errno != ECHILD) {
    for (const pid_t pid : descendants_of(::getpid())) ::kill(pid, SIGKILL);
    options = 0;
  }
}

base::Result<pid_t> inner_half_of(pid_t shim) {
  static constexpr std::string_view kInnerHalf("\0--inner\0", 9);
  for (const pid_t pid : descendants_of(shim)) {
    const auto line = base::read_file("/proc/" + std::to_string(pid) + "/cmdline");
    // The command line of bubblewrap contains "--inner", too. That of the inner half has nothing
    // after it, and only the program before it.
    if (line && line->ends_with(kInnerHalf) &&
        line->find('\0') + kInnerHalf.size() == line->size()) {
      return pid;
    }
  }
  return base::Error{.code = base::ErrorCode::kConflict, .what = "the task is ending"};
}

// --- programs of the task

namespace {

// The kernel keeps 15 bytes of a process's name.
constexpr size_t kKeptOfName = 15;

std::string_view kernel_name_of(std::string_view program) {
  return program.substr(program.rfind('/') + 1).substr(0, kKeptOfName);
}

std::string stat_of(pid_t pid) {
  return read_proc_file("/proc/" + std::to_string(pid) + "/stat");
}

bool lives(std::string_view stat) {
  const size_t bracket = stat.rfind(')');
  return bracket != std::string_view::npos && !stat.substr(bracket).starts_with(") Z");
}

}  // namespace

// Compares the name of the process, not its command line: an sshd changes its command line, and
// since OpenSSH 9.8 it runs other programs whose names begin with sshd (sshd-session).
std::vector<pid_t> reached_programs(std::string_view shell) {
  std::vector<pid_t> programs;
  for (const pid_t pid : descendants_of(::getpid())) {
    const std::string stat = stat_of(pid);
    const bool is_shell = !shell.empty() && name_in_stat(stat).starts_with(kernel_name_of(shell));
    if (lives(stat) && !is_shell) programs.push_back(pid);
  }
  return programs;
}

std::vector<pid_t> others_in_namespace() {
  std::vector<pid_t> others = all_processes();
  std::erase_if(others, [](pid_t pid) {
    const std::string stat = stat_of(pid);
    const auto read = parse_stat(stat);
    return pid == ::getpid() || !lives(stat) || (read && read->second.terminal != 0);
  });
  return others;
}

}  // namespace muster::engine
