#include "engine/shim/exec.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/shim/modes.h"
#include "engine/shim/plan.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/task_account.h"
#include "engine/shim/task_groups.h"
#include "engine/shim/task_limits.h"

namespace muster::engine {

using base::Result;

// --- environments

std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (const std::string& entry : environment) {
    if (more.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::vector<std::string> merged(const std::vector<std::string>& environment,
                                const std::vector<std::string>& more) {
  std::map<std::string, std::string> named;
  for (const std::string& entry : more) {
    const size_t end = entry.find('=');
    if (end != std::string::npos) named[entry.substr(0, end)] = entry.substr(end + 1);
  }
  return merged(environment, named);
}

// --- the sandbox of a task

namespace {

/// Whether a namespace of the task differs from this process's own. A process cannot enter the user
/// namespace in which it is already.
bool differs(pid_t task, const std::string& name) {
  struct stat ours{};
  struct stat theirs{};
  return ::stat(("/proc/self/ns/" + name).c_str(), &ours) == 0 &&
         ::stat(("/proc/" + std::to_string(task) + "/ns/" + name).c_str(), &theirs) == 0 &&
         ours.st_ino != theirs.st_ino;
}

/// The pid of a pidfd, in this process's PID namespace.
pid_t pid_of(int pidfd) {
  const auto text = base::read_file("/proc/self/fdinfo/" + std::to_string(pidfd));
  const size_t at = text ? text->find("\nPid:") : std::string::npos;
  return at == std::string::npos ? 0 : std::atoi(text->c_str() + at + 5);
}

}  // namespace

base::Result<void> enter_task(int task) {
  const pid_t process = pid_of(task);
  int namespaces = 0;
  for (const auto& [name, flag] :
       {std::pair("user", CLONE_NEWUSER), std::pair("mnt", CLONE_NEWNS),
        std::pair("uts", CLONE_NEWUTS), std::pair("ipc", CLONE_NEWIPC),
        std::pair("pid", CLONE_NEWPID), std::pair("net", CLONE_NEWNET)}) {
    if (differs(process, name)) namespaces |= flag;
  }
  // All at once: the right to enter the others comes with the user namespace.
  if (namespaces != 0 && ::setns(task, namespaces) != 0) {
    return base::system_error("cannot enter the task's sandbox", errno);
  }
  // Bubblewrap sets this for the task itself, too.
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return {};
}

base::Result<void> filter_system_calls(std::string_view program) {
  std::vector<sock_filter> instructions(program.size() / sizeof(sock_filter));
  std::memcpy(instructions.data(), program.data(), instructions.size() * sizeof(sock_filter));
  const sock_fprog filter{.len = static_cast<unsigned short>(instructions.size()),
                          .filter = instructions.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    return base::system_error("cannot filter the system calls of a program", errno);
  }
  return {};
}

// --- starting a program

namespace {

/// The first line of a script, as far as the kernel reads it: 256 bytes.
std::string head_line_of(const std::string& program) {
  std::array<char, 256> buffer{};
  const base::UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
  const std::string head(buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return head.substr(0, head.find('\n'));
}

/// The words after "#!" in a line such as "#! /usr/bin/env python3".
std::vector<std::string> words_behind_mark(const std::string& line) {
  std::vector<std::string> words;
  size_t begin = line.find_first_not_of(" \t", 2);
  while (begin != std::string::npos) {
    const size_t end = line.find_first_of(" \t", begin);
    words.push_back(line.substr(begin, end - begin));
    begin = end == std::string::npos ? end : line.find_first_not_of(" \t", end);
  }
  return words;
}

/// Whether an argument of /usr/bin/env is the program: neither an option nor a variable.
bool is_program_for_env(const std::string& word) {
  return !word.starts_with('-') && word.find('=') == std::string::npos;
}

/// How long programs that handle a hang-up may clean up before they are killed. As long as that: on a
/// machine under load, a program may wait for a CPU for seconds before its handler runs.
constexpr std::chrono::seconds kGrace{30};

void report_end(const job::ExitStatus& status) {
  const std::string text = encode(ExitRecord{.status = status});
  [[maybe_unused]] const ssize_t sent =
      ::send(kExecControl, text.data(), text.size(), MSG_NOSIGNAL);
}

Result<base::Child> start_in_task(const InnerPlan& plan) {
  MUSTER_CHECK(TaskGroups(plan.limits.groups).enter());
  if (plan.own_process_tree) MUSTER_CHECK(enter_task(kExecTask));
  MUSTER_CHECK(set_resource_limits(plan.limits));
  // The task itself runs without these, too; its log has the reason.
  [[maybe_unused]] const auto placed = set_cpus_and_niceness(plan.limits);
  if (plan.account) MUSTER_CHECK(take_ids(*plan.account));
  if (!plan.filter.empty()) MUSTER_CHECK(filter_system_calls(plan.filter));
  if (::chdir(plan.folder.c_str()) != 0) {
    return base::system_error("cannot enter the working folder '" + plan.folder + "'", errno);
  }
  MUSTER_TRY(std::string path, base::find_program(plan.argv.front(), plan.environment));
  base::SpawnOptions options{.argv = plan.argv,
                             .program = std::move(path),
                             .environment = plan.environment,
                             .new_session = true,
                             .folder = plan.folder};
  std::array<char, 64> terminal{};
  if (::ttyname_r(STDIN_FILENO, terminal.data(), terminal.size()) == 0) {
    options.terminal = terminal.data();
  } else {
    for (const int fd : {0, 1, 2}) options.descriptors.emplace_back(fd, fd);
  }
  return spawn_program(options);
}

/// Closes this process's copies of the program's descriptors: their other ends see the end of the
/// output only when no process has them open.
void close_standard_streams() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {0, 1, 2}) ::dup2(nothing, fd);
}

/// Runs as the process between muster-shim --exec and the program: enters the task, starts the
/// program there, and reports how it ended.
int run_between(const InnerPlan& plan) {
  const auto program = start_in_task(plan);
  close_standard_streams();
  if (!program) {
    report_end(status_of_failed_start(program.error()));
    return 1;
  }
  const auto status = base::wait_for(*program);
  if (status) {
    report_end(WIFSIGNALED(*status) ? job::ExitStatus{.signal = WTERMSIG(*status)}
                                    : job::ExitStatus{.code = WEXITSTATUS(*status)});
  }
  return 0;
}

/// Whether the process ends by SIGHUP, or does what it has set up for that signal.
bool heeds_hang_up(pid_t pid) {
  const std::string status = read_proc_file("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find("\nSigIgn:");
  if (at == std::string::npos) return false;
  const uint64_t ignored = std::strtoull(status.c_str() + at + 8, nullptr, 16);
  return (ignored >> (SIGHUP - 1) & 1) == 0;
}

/// Of the processes that a hang-up ends. `between` ends after its program.
std::vector<base::UniqueFd> pidfds_of(const std::set<pid_t>& processes, pid_t between) {
  std::vector<base::UniqueFd> pidfds;
  for (const pid_t pid : processes) {
    if (pid == between || !heeds_hang_up(pid)) continue;
    if (auto pidfd = base::open_pidfd(pid)) pidfds.push_back(*std::move(pidfd));
  }
  return pidfds;
}

/// Waits until all processes have ended, or the grace period is over.
void await_end(const std::vector<base::UniqueFd>& processes) {
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  for (const base::UniqueFd& process : processes) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ends{process.get(), POLLIN, 0};
    ::poll(&ends, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
  }
}

/// Sends SIGHUP to the program and all processes below it, waits until those have ended that do not
/// ignore it, and kills the rest. A process that is forked meanwhile becomes an orphan in the task's
/// process tree, where only its session still identifies it.
void hang_up(pid_t between, const base::UniqueFd& its_pidfd) {
  const std::vector<pid_t> below = descendants_of(::getpid());
  std::set<pid_t> sessions = sessions_of(below);
  // The kernel has sent SIGHUP to a shell whose terminal is gone. If the shell has ended, what it had
  // started is such an orphan already.
  std::set<pid_t> all = processes_in(sessions);
  all.insert(below.begin(), below.end());
  const std::vector<base::UniqueFd> pidfds = pidfds_of(all, between);
  for (const int signal : {SIGHUP, SIGCONT}) {
    for (const pid_t pid : all) {
      if (pid != between) ::kill(pid, signal);  // that process must report the program's end
    }
  }
  await_end(pidfds);
  sessions.merge(sessions_of(descendants_of(::getpid())));
  kill_sessions(sessions);
  // It reports the program's end.
  pollfd end{its_pidfd.get(), POLLIN, 0};
  ::poll(&end, 1, static_cast<int>(std::chrono::milliseconds(kGrace).count()));
}

/// Waits until the process between has ended, or the engine or the task is gone.
void wait_for_end(pid_t between, const base::UniqueFd& pidfd) {
  std::array<pollfd, 3> watched{
      {{pidfd.get(), POLLIN, 0}, {kExecControl, POLLIN, 0}, {kExecTask, POLLIN, 0}}};
  while (::poll(watched.data(), watched.size(), -1) < 0) continue;
  // A shell whose terminal is closed may end before this process runs again. The programs that it has
  // started get their SIGHUP and their time all the same.
  if (watched[1].revents != 0 && watched[2].revents == 0) hang_up(between, pidfd);
}

}  // namespace

int run_exec() {
  for (const int fd : {kExecControl, kExecPlan, kExecTask}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto text = base::read_file("/proc/self/fd/" + std::to_string(kExecPlan));
  const auto plan = text ? decode_inner_plan(*text) : Result<InnerPlan>(text.error());
  if (!plan) {
    report_end(status_of_failed_start(plan.error()));
    return 1;
  }
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run_between(*plan));
  close_standard_streams();
  if (const auto between = base::open_pidfd(pid)) wait_for_end(pid, *between);
  kill_descendants();
  return 0;
}

base::Error no_such_program(const std::string& name) {
  return {.code = base::ErrorCode::kNotFound,
          .what = "the task has no program '" + name + "'",
          .advice = "give its full path, or name one in the PATH of the task"};
}

job::ExitStatus status_of_failed_start(const base::Error& error) {
  constexpr int kNotFound = 127;
  constexpr int kNotExecutable = 126;
  const bool missing = error.code == base::ErrorCode::kNotFound;
  return {
      .code = missing ? kNotFound : kNotExecutable, .error = error.what, .advice = error.advice};
}

std::optional<base::Error> interpreter_fault(const std::string& program,
                                             const std::vector<std::string>& environment) {
  std::string line = head_line_of(program);
  if (!line.starts_with("#!")) return std::nullopt;
  const bool is_crlf = line.ends_with('\r');
  if (is_crlf) line.pop_back();
  const std::vector<std::string> words = words_behind_mark(line);
  const bool asks_env = words.size() > 1 && words[0].ends_with("/env");
  const auto named =
      asks_env ? std::find_if(words.begin() + 1, words.end(), is_program_for_env) : words.begin();
  if (named == words.end()) return std::nullopt;
  // If the interpreter has an argument, the carriage return belongs to the argument.
  const bool is_part_of_name = is_crlf && named + 1 == words.end();
  const bool is_path = named->find('/') != std::string::npos;
  const std::string looked_for = asks_env || is_path ? *named : "./" + *named;
  const std::string which = "the first line of '" + program + "' names the interpreter '" + *named;
  if (is_part_of_name) {
    return base::Error{.code = base::ErrorCode::kNotFound,
                       .what = which + "' and ends with a carriage return (CRLF line ends)",
                       .advice = "convert its line ends: sed -i 's/\\r$//' " + program};
  }
  if (base::find_program(looked_for, environment)) return std::nullopt;
  const std::string where =
      asks_env && !is_path ? "is not on the PATH of the task" : "does not exist";
  return base::Error{.code = base::ErrorCode::kNotFound,
                     .what = which + "', which " + where,
                     .advice = "correct that line, or install the interpreter where the task runs"};
}

Result<base::Child> spawn_program(const base::SpawnOptions& options) {
  auto child = base::spawn(options);
  if (child || child.error().code != base::ErrorCode::kNotFound) return child;
  const std::string& program = options.program;
  if (auto fault = interpreter_fault(program, options.environment)) return *std::move(fault);
  return base::Error{
      .code = base::ErrorCode::kNotFound,
      .what = "'" + program + "' exists, but the program loader that it names does not",
      .advice =
          "it was built for another system or C library: build it for the "
          "machine or image that the task runs in"};
}

}  // namespace muster::engine
