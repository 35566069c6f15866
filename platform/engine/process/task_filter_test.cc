#include "engine/process/task_filter.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "engine/shim/exec.h"

namespace muster::engine {
namespace {

/// The errno of `call` in a process under the filter; 0: it succeeds.
int error_under(const TaskFilter& filter, const std::function<long()>& call) {
  const auto program = filter_program(filter);
  EXPECT_TRUE(program) << program.error().to_string();
  const pid_t child = ::fork();
  if (child == 0) {
    if (!program || !filter_system_calls(*program)) ::_exit(255);
    errno = 0;
    ::_exit(call() < 0 ? errno : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(TaskFilter, RefusesSystemCallsThatTrainingDoesNotNeed) {
  const std::vector<std::pair<const char*, std::function<long()>>> calls{
      {"keyctl", [] { return ::syscall(SYS_keyctl, 0, -3, 0); }},
      {"add_key", [] { return ::syscall(SYS_add_key, "user", "a", "b", 1, -3); }},
      {"bpf", [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }},
      {"perf_event_open", [] { return ::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0); }},
      {"userfaultfd", [] { return ::syscall(SYS_userfaultfd, 1); }},
      {"io_uring_setup", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"kexec_load", [] { return ::syscall(SYS_kexec_load, 0, 0, nullptr, 0); }},
      {"init_module", [] { return ::syscall(SYS_init_module, nullptr, 0, ""); }},
      {"mount", [] { return long{::mount("none", "/", "tmpfs", MS_REMOUNT, nullptr)}; }},
      {"unshare of users", [] { return long{::unshare(CLONE_NEWUSER)}; }},
      {"unshare of mounts", [] { return long{::unshare(CLONE_NEWNS | CLONE_NEWUTS)}; }},
      {"clone with users",
       [] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, 0, 0, 0); }},
      {"TIOCSTI", [] { return long{::ioctl(0, TIOCSTI, "x")}; }},
      {"TIOCSTI behind high bits",
       [] { return ::syscall(SYS_ioctl, 0, (1UL << 32) | TIOCSTI, "x"); }}};
  for (const auto& [name, call] : calls) EXPECT_EQ(error_under({}, call), EPERM) << name;
}

TEST(TaskFilter, MakesTheCLibraryUseCloneInsteadOfClone3) {
  EXPECT_EQ(error_under({}, [] { return ::syscall(SYS_clone3, nullptr, 0); }), ENOSYS);
  EXPECT_EQ(error_under({},
                        [] {
                          const pid_t child = ::fork();
                          if (child == 0) ::_exit(0);
                          return long{::waitpid(child, nullptr, 0) == child ? 0 : -1};
                        }),
            0);
}

TEST(TaskFilter, AllowsSystemCallsThatMpiAndDebuggersNeed) {
  EXPECT_EQ(error_under({},
                        [] {
                          int there = 7;
                          int here = 0;
                          iovec to{&here, sizeof here};
                          iovec from{&there, sizeof there};
                          return ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
                        }),
            0);
  EXPECT_EQ(error_under({}, [] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }), 0);
  EXPECT_EQ(error_under({}, [] { return long{::unshare(CLONE_FS)}; }), 0);
}

TEST(TaskFilter, AllowsUserNamespacesIfConfigured) {
  const TaskFilter filter{.user_namespaces = true};
  EXPECT_EQ(error_under(filter, [] { return long{::unshare(CLONE_NEWUSER)}; }), 0);
  EXPECT_EQ(error_under(filter, [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }), EPERM);
}

}  // namespace
}  // namespace muster::engine
