#include "base/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace muster::base {

namespace {

std::vector<char*> pointers_of(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// posix_spawn's lists, freed by the destructor.
struct SpawnLists {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnLists() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnLists(const SpawnLists&) = delete;
  SpawnLists& operator=(const SpawnLists&) = delete;
  ~SpawnLists() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

/// Inherited descriptors are first copied above every target number: otherwise a source that equals
/// another's target would be overwritten before its turn.
Result<std::vector<UniqueFd>> lift(const SpawnOptions& options) {
  int floor = 3;
  for (const auto& [source, target] : options.descriptors) floor = std::max(floor, target + 1);
  std::vector<UniqueFd> lifted;
  for (const auto& [source, target] : options.descriptors) {
    lifted.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, floor));
    if (!lifted.back()) return system_error("cannot copy descriptor", errno);
  }
  return lifted;
}

void add_descriptors(SpawnLists& lists, const SpawnOptions& options,
                     const std::vector<UniqueFd>& lifted) {
  if (!options.terminal.empty()) {
    // The first terminal that a session leader opens becomes its controlling terminal.
    posix_spawn_file_actions_addopen(&lists.actions, 0, options.terminal.c_str(), O_RDWR, 0);
    for (const int fd : {1, 2}) posix_spawn_file_actions_adddup2(&lists.actions, 0, fd);
  }
  for (int fd = 0; fd < 3 && options.terminal.empty(); ++fd) {
    const bool named = std::any_of(options.descriptors.begin(), options.descriptors.end(),
                                   [fd](const auto& entry) { return entry.second == fd; });
    if (!named) posix_spawn_file_actions_addopen(&lists.actions, fd, "/dev/null", O_RDWR, 0);
  }
  int beyond = 3;
  for (size_t i = 0; i < lifted.size(); ++i) {
    const int target = options.descriptors[i].second;
    posix_spawn_file_actions_adddup2(&lists.actions, lifted[i].get(), target);
    beyond = std::max(beyond, target + 1);
  }
  posix_spawn_file_actions_addclosefrom_np(&lists.actions, beyond);
}

}  // namespace

Result<Child> spawn(const SpawnOptions& options) {
  MUSTER_TRY(const std::vector<UniqueFd> lifted, lift(options));
  SpawnLists lists;
  add_descriptors(lists, options, lifted);
  if (!options.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&lists.actions, options.folder.c_str());
  }

  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : options.blocked_signals) sigaddset(&blocked, signal);
  sigset_t all;
  sigfillset(&all);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (options.new_session) flags = static_cast<short>(flags | POSIX_SPAWN_SETSID);
  posix_spawnattr_setsigmask(&lists.attributes, &blocked);
  posix_spawnattr_setsigdefault(&lists.attributes, &all);
  posix_spawnattr_setflags(&lists.attributes, flags);

  const std::vector<char*> argv = pointers_of(options.argv);
  const std::vector<char*> environment = pointers_of(options.environment);
  const std::string& program = options.program.empty() ? options.argv.front() : options.program;
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, program.c_str(), &lists.actions, &lists.attributes,
                                  argv.data(), environment.data());
  if (failed != 0) return system_error("cannot start '" + program + "'", failed);
  auto pidfd = open_pidfd(pid);
  if (pidfd) return Child{.pid = pid, .pidfd = *std::move(pidfd)};
  // No child may run unwatched. It is not reaped yet, so its pid is not that of another process.
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  Error error = std::move(pidfd).error();
  error.what = "cannot start '" + program + "': " + error.what;
  return error;
}

Result<std::string> find_program(const std::string& name,
                                 const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  std::vector<std::string> candidates{name};
  if (name.find('/') == std::string::npos) {
    candidates.clear();
    for (const std::string& entry : environment) {
      if (!entry.starts_with(kPath)) continue;
      for (const std::string& folder : split(entry.substr(kPath.size()), ':')) {
        candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
      }
    }
  }
  Error error{.code = ErrorCode::kNotFound, .what = "'" + name + "' was not found"};
  for (const std::string& path : candidates) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0) return path;
    error = {
        .code = ErrorCode::kRefused,
        .what = "'" + path + "' is " +
                (S_ISDIR(status.st_mode) ? "a folder, not a program" : "not an executable file")};
  }
  return error;
}

Result<int> wait_for(const Child& child) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0) {
    if (errno != EINTR) return system_error("cannot wait for a child", errno);
  }
  return status;
}

// By system call number: glibc 2.36's <sys/pidfd.h> lacks extern "C", so its wrappers do not link
// from C++.
Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return system_error("cannot watch process " + std::to_string(pid), errno);
  return fd;
}

Result<void> send_signal(const UniqueFd& pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) != 0) {
    return system_error("cannot signal a process", errno);
  }
  return {};
}

std::vector<std::string> current_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

}  // namespace muster::base
