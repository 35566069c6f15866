#include "engine/shim/enter_task.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"

namespace muster::engine {

namespace {

/// Whether a namespace of the task is another than this process's own. One cannot enter the user
/// namespace in which one is already.
bool differs(pid_t task, const std::string& name) {
  struct stat ours{};
  struct stat theirs{};
  return ::stat(("/proc/self/ns/" + name).c_str(), &ours) == 0 &&
         ::stat(("/proc/" + std::to_string(task) + "/ns/" + name).c_str(), &theirs) == 0 &&
         ours.st_ino != theirs.st_ino;
}

/// "Pid:" of a pidfd, in this process's numbers.
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
  // As bubblewrap has it for the task itself.
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

}  // namespace muster::engine
