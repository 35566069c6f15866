// The system calls that the kernel refuses to the tasks of a team server: a seccomp filter.
//
// A sandbox separates tasks by namespaces. The filter closes what namespaces leave open, and what
// training does not need: kernel keyrings, BPF, performance counters, userfaultfd, io_uring, new
// namespaces and mounts, kernel modules, kexec, the clock, and the ioctls that type into a
// terminal. process_vm_readv and ptrace stay: MPI copies large messages by the former, debuggers
// need the latter, and neither reaches beyond the process tree of a sandbox.
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

/// The filter as the kernel reads it: an array of struct sock_filter. Covers the 32-bit and x32
/// calls of x86, too.
///
/// kUnavailable: libseccomp cannot build a filter for this machine's processor.
base::Result<std::string> filter_program(const TaskFilter& filter);

}  // namespace muster::engine
