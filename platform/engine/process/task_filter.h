// The seccomp filter for the tasks of a team server: the system calls that the kernel refuses.
//
// A sandbox separates tasks by namespaces. The filter forbids system calls that namespaces do not
// confine and that training does not need: kernel keyrings, BPF, performance counters, userfaultfd,
// io_uring, new namespaces and mounts, kernel modules, kexec, the clock, and the ioctls that type
// into a terminal. process_vm_readv and ptrace stay allowed: MPI copies large messages with the
// former, debuggers need the latter, and neither reaches beyond the process tree of a sandbox.
//
// Thread-safe: no state.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::engine {

struct TaskFilter {
  /// Tasks may create user namespaces, and mount file systems in them: for rootless containers
  /// within a job. The kernel then offers tasks much more code to attack.
  bool user_namespaces = false;
};

/// The filter in the kernel's format: an array of struct sock_filter. On x86 it also covers the
/// 32-bit and x32 calls.
///
/// kUnavailable: libseccomp cannot build a filter for this machine's processor.
base::Result<std::string> filter_program(const TaskFilter& filter);

}  // namespace muster::engine
