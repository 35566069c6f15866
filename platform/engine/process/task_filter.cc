#include "engine/process/task_filter.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

/// Older kernel headers lack TIOCLINUX.
constexpr uint32_t kLinuxConsole = 0x541C;  // TIOCLINUX

constexpr std::array<const char*, 29> kRefused{"keyctl",
                                               "add_key",
                                               "request_key",
                                               "bpf",
                                               "perf_event_open",
                                               "userfaultfd",
                                               "io_uring_setup",
                                               "io_uring_enter",
                                               "io_uring_register",
                                               "kexec_load",
                                               "kexec_file_load",
                                               "init_module",
                                               "finit_module",
                                               "delete_module",
                                               "reboot",
                                               "swapon",
                                               "swapoff",
                                               "acct",
                                               "settimeofday",
                                               "clock_settime",
                                               "clock_adjtime",
                                               "adjtimex",
                                               "quotactl",
                                               "syslog",
                                               "open_by_handle_at",
                                               "name_to_handle_at",
                                               "lookup_dcookie",
                                               "iopl",
                                               "ioperm"};

/// Each needs a capability that a task has only in a user namespace of its own.
constexpr std::array<const char*, 12> kMounting{
    "mount",  "umount",   "umount2", "pivot_root", "mount_setattr", "open_tree",
    "fsopen", "fsconfig", "fsmount", "fspick",     "move_mount",    "setns"};

constexpr std::array<uint64_t, 8> kNamespaces{CLONE_NEWUSER,   CLONE_NEWNS,  CLONE_NEWPID,
                                              CLONE_NEWNET,    CLONE_NEWIPC, CLONE_NEWUTS,
                                              CLONE_NEWCGROUP, CLONE_NEWTIME};

struct ReleaseFilter {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, ReleaseFilter>;

class FilterWriter {
 public:
  FilterWriter() : context_(seccomp_init(SCMP_ACT_ALLOW)) {
    if (!context_) {
      fail(ENOMEM);
      return;
    }
    // Otherwise a program for another mode of the processor would be killed, or not filtered.
    if (seccomp_arch_native() == SCMP_ARCH_X86_64) {
      for (const uint32_t mode : {SCMP_ARCH_X86, SCMP_ARCH_X32}) {
        if (const int code = seccomp_arch_add(context_.get(), mode); code != -EEXIST) check(code);
      }
    }
  }

  /// Refuses a system call. A call that does not exist on this processor, or that this libseccomp
  /// does not support, gets no rule.
  void refuse(const char* name, uint32_t error = EPERM) {
    const int call = seccomp_syscall_resolve_name(name);
    if (failed_ || call == __NR_SCMP_ERROR) return;
    check(seccomp_rule_add(context_.get(), SCMP_ACT_ERRNO(error), call, 0));
  }

  /// Refuses a system call if the masked argument of that number equals `bits`.
  void refuse_with(const char* name, unsigned argument, uint64_t mask, uint64_t bits) {
    const int call = seccomp_syscall_resolve_name(name);
    if (failed_ || call == __NR_SCMP_ERROR) return;
    const scmp_arg_cmp where{argument, SCMP_CMP_MASKED_EQ, mask, bits};
    check(seccomp_rule_add_array(context_.get(), SCMP_ACT_ERRNO(EPERM), call, 1, &where));
  }

  base::Result<std::string> program() {
    if (failed_) return failure();
    const base::UniqueFd file(::memfd_create("filter", MFD_CLOEXEC));
    if (!file) return base::system_error("cannot make a file in memory", errno);
    check(seccomp_export_bpf(context_.get(), file.get()));
    if (failed_) return failure();
    return base::read_file("/proc/self/fd/" + std::to_string(file.get()));
  }

 private:
  void check(int code) {
    if (code != 0) fail(-code);
  }
  void fail(int number) {
    if (!failed_) number_ = number;
    failed_ = true;
  }
  Error failure() const {
    return {.code = ErrorCode::kUnavailable,
            .what = std::string("cannot build the system call filter of tasks: ") +
                    std::strerror(number_)};
  }

  Context context_;
  bool failed_ = false;
  int number_ = 0;
};

}  // namespace

base::Result<std::string> filter_program(const TaskFilter& filter) {
  FilterWriter writer;
  for (const char* call : kRefused) writer.refuse(call);
  constexpr uint64_t kWord = 0xffffffff;  // the kernel reads 32 bits of a request
  for (const uint32_t request : {uint32_t{TIOCSTI}, kLinuxConsole}) {
    writer.refuse_with("ioctl", 1, kWord, request);
  }
  if (!filter.user_namespaces) {
    for (const char* call : kMounting) writer.refuse(call);
    for (const uint64_t flag : kNamespaces) {
      writer.refuse_with("clone", 0, flag, flag);
      writer.refuse_with("unshare", 0, flag, flag);
    }
    // The flags of clone3 are in memory, which a filter cannot read. With ENOSYS, the C library
    // calls clone instead.
    writer.refuse("clone3", ENOSYS);
  }
  return writer.program();
}

}  // namespace muster::engine
