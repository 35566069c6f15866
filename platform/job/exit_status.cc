#include "job/exit_status.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/units.h"

namespace muster::job {

namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;

// Signals that often end programs, so that 128 + signal is most likely a shell's code. Launchers
// use other codes in that range: mpirun's 132 does not mean SIGILL.
constexpr std::array kShellSignals{SIGINT,  SIGABRT, SIGBUS,  SIGFPE,
                                   SIGKILL, SIGSEGV, SIGPIPE, SIGTERM};

std::string signal_name(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return abbreviation == nullptr
             ? "signal " + std::to_string(signal)
             : "signal " + std::to_string(signal) + " (SIG" + abbreviation + ")";
}

/// The meaning of a code for shells and MPI launchers.
std::string meaning_of_code(int code) {
  if (code == kNotFound) return "the command was not found";
  if (code == kNotExecutable) return "the command was found but is not executable";
  for (const int signal : kShellSignals) {
    if (code == kSignalBase + signal) return "as after " + signal_name(signal);
  }
  return "";
}

/// The signal that ended the task, or that its code stands for; 0: none.
int signal_of(const ExitStatus& status) {
  if (status.signal != 0) return status.signal;
  const auto found =
      std::find(kShellSignals.begin(), kShellSignals.end(), status.code - kSignalBase);
  return found == kShellSignals.end() ? 0 : *found;
}

struct LimitWords {
  const char* what;
  const char* advice;
};

LimitWords words_for(Limit limit) {
  switch (limit) {
    case Limit::kMemory:
      return {"out of memory",
              "request more memory (--memory), or use less in each process (a smaller batch), or "
              "fewer processes"};
    case Limit::kProcesses:
      return {"too many processes and threads",
              "start fewer processes and threads; the administrator can raise tasks.processes"};
    case Limit::kScratch:
      return {"too much scratch space",
              "remove temporary files sooner, or write them to a volume; the administrator can "
              "raise tasks.scratch"};
    case Limit::kFileSize:
      break;
  }
  return {"a file became too large",
          "write several smaller files; the administrator can raise tasks.file_size"};
}

/// "out of memory (its limit is 1Gi, its peak was 1Gi)".
std::string explain(const LimitReached& reached) {
  const auto amount = [&](int64_t number) {
    return reached.limit == Limit::kProcesses ? std::to_string(number) : base::format_bytes(number);
  };
  std::string known;
  if (reached.bound > 0) known = "its limit is " + amount(reached.bound);
  if (reached.peak > 0)
    known += (known.empty() ? "" : ", ") + ("its peak was " + amount(reached.peak));
  const std::string what = words_for(reached.limit).what;
  return known.empty() ? what : what + " (" + known + ")";
}

std::string advice_for_signal(const ExitStatus& status) {
  switch (status.stopped ? 0 : signal_of(status)) {
    case SIGKILL:
      if (!status.error.empty()) return "";  // the error gives the reason
      return "Muster did not send that signal. Usually the kernel sends it when memory runs out "
             "(dmesg on the machine shows it); try a smaller batch or fewer processes";
    case SIGSEGV:
    case SIGFPE:
      return "a defect in the program or in a library it loads; run it under a debugger";
    case SIGBUS:
      return "usually shared memory (/dev/shm) is too small, or a mapped file was truncated: try "
             "fewer loader processes, or smaller batches";
    case SIGILL:
      return "it was built for another type of CPU, or has a defect; build it on this machine";
    case SIGABRT:
      return "the program aborted: a failed assertion or an uncaught exception; see its last lines";
    default:
      return "";
  }
}

std::string what_kubernetes_did(const PodEnd& end) {
  const std::string on = end.node.empty() ? "" : " on node " + end.node;
  using Cause = PodEnd::Cause;
  switch (end.cause) {
    case Cause::kEvicted:
      return "Kubernetes evicted its pod" + on;
    case Cause::kPreempted:
      return "Kubernetes preempted its pod" + on + " for a pod of higher priority";
    case Cause::kQueueEvicted:
      return "Kueue evicted its pods";
    case Cause::kDrained:
      return "its pod" + on + " was evicted by request: the node is being drained";
    case Cause::kTainted:
      return "Kubernetes removed its pod" + on + " because of a taint of the node";
    case Cause::kShutDown:
      return "node " + end.node + " shuts down";
    case Cause::kDeleted:
      return "its pod " + end.pod + " was deleted";
    case Cause::kNodeLost:
      return "node " + end.node + " of its pod is gone";
    case Cause::kNotAdmitted:
      return "node " + end.node + " did not accept its pod";
    case Cause::kDeadline:
      return "its pod" + on + " exceeded its deadline";
    case Cause::kEnded:
      break;
  }
  return "its container" + on + " ended before the task's end was reported";
}

}  // namespace

std::string explain(const PodEnd& end) {
  std::string text = what_kubernetes_did(end);
  if (!end.text.empty()) text += ": " + end.text;
  if (!end.word.empty()) text += " (" + end.word + ")";
  return text;
}

int ExitStatus::shell_code() const {
  if (lost) return kSignalBase + SIGKILL;
  return signal != 0 ? kSignalBase + signal : code;
}

std::string explain(const ExitStatus& status) {
  if (status.lost) {
    return "was lost: " + (status.pod ? explain(*status.pod)
                           : status.error.empty()
                               ? "its supervisor process was killed, or the machine restarted"
                               : status.error);
  }
  std::string text;
  if (status.stopped && (status.signal == SIGTERM || status.signal == SIGKILL)) {
    return "was stopped (SIG" + std::string(sigabbrev_np(status.signal)) + ")";
  }
  if (status.signal != 0) {
    text = "was killed by " + signal_name(status.signal);
  } else {
    // A specific cause replaces the general meaning of the code, which may contradict it.
    const std::string meaning = status.advice.empty() ? meaning_of_code(status.code) : status.error;
    text = "exited with code " + std::to_string(status.code);
    if (!meaning.empty()) text += ": " + meaning;
  }
  if (!status.error.empty() && status.advice.empty()) text += " (" + status.error + ")";
  const bool is_of_machine = status.limit == LimitReached{.limit = Limit::kMemory};
  if (status.limit && !is_of_machine) {
    text = (was_killed(status) ? "was killed" : text) + ": " + explain(*status.limit);
  } else if (status.out_of_memory) {
    text += ": the kernel's out-of-memory killer ended a process on this machine";
  }
  if (status.stopped) text += " after a request to stop";
  return text;
}

bool names_cause(const ExitStatus& status) {
  if (status.lost || status.out_of_memory || status.limit || !status.error.empty()) return true;
  return status.signal == 0 && status.advice.empty() && !meaning_of_code(status.code).empty();
}

bool was_killed(const ExitStatus& status) {
  return status.shell_code() == kSignalBase + SIGKILL;
}

bool was_not_found(const ExitStatus& status) {
  const bool has_other_cause = !status.advice.empty();
  return status.signal == 0 && status.code == kNotFound && !status.lost && !has_other_cause;
}

std::string advice_for(const ExitStatus& status) {
  if (!status.advice.empty()) return status.advice;
  const bool is_of_machine = status.limit == LimitReached{.limit = Limit::kMemory};
  if (status.limit && !is_of_machine) return words_for(status.limit->limit).advice;
  if (status.out_of_memory) {
    return "use less memory in each process (a smaller batch), or fewer processes on the machine";
  }
  if (status.lost) return "submit it again; none of its processes are left";
  if (std::string advice = advice_for_signal(status); !advice.empty()) return advice;
  if (status.signal == 0 && status.code == kNotFound) {
    return "check the spelling, give the full path, or install the program on this machine";
  }
  const bool is_foreign = status.error.find("Exec format error") != std::string::npos;
  if (status.signal == 0 && status.code == kNotExecutable && is_foreign) {
    return "it was built for another type of CPU, or is a script whose first line names no "
           "interpreter (#!/bin/sh)";
  }
  if (status.signal == 0 && status.code == kNotExecutable) {
    return "name an executable file (chmod +x), or its interpreter, as in: python3 train.py";
  }
  return "";
}

std::string lost_output(const ExitStatus& status) {
  if (status.lost_log_bytes == 0) return "";
  return std::to_string(status.lost_log_bytes) +
         " bytes of its output are lost: the disk of its log was full";
}

}  // namespace muster::job
