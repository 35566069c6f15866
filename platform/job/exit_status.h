// How a task ended, and an explanation in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster::job {

/// Something that a task may use within a bound.
enum class Limit {
  kMemory,
  kProcesses,  ///< and threads
  kScratch,    ///< its temporary files
  kFileSize,   ///< of each file that it writes
};

/// A limit that a task reached. The task was killed for it, or was refused more.
struct LimitReached {
  Limit limit = Limit::kMemory;
  int64_t bound = 0;  ///< in bytes; of kProcesses a number; 0: unknown
  int64_t peak = 0;   ///< the most that the task used; 0: unknown

  bool operator==(const LimitReached&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("limit", self.limit);
    visit("bound", self.bound);
    visit("peak", self.peak);
  }
};

/// How Kubernetes ended the pod of a task, before the task's own end was reported.
struct PodEnd {
  enum class Cause {
    kEnded,         ///< its container ended, see ExitStatus
    kEvicted,       ///< the node was short of a resource
    kPreempted,     ///< for a pod of higher priority
    kQueueEvicted,  ///< by Kueue, which has withdrawn the admission of its gang
    kDrained,       ///< by a request to evict it, as when its node is drained
    kTainted,       ///< the node got a taint that it does not tolerate
    kShutDown,      ///< the node shuts down
    kDeleted,       ///< by a request to delete the pod
    kNodeLost,      ///< the node is gone, or was declared out of service
    kNotAdmitted,   ///< the node did not accept it
    kDeadline,      ///< the time limit of the pod
  };
  Cause cause = Cause::kEnded;
  std::string pod;
  std::string node;
  std::string word;  ///< Kubernetes' reason: "Evicted"; empty: none
  std::string text;  ///< Kubernetes' own sentence; may be empty

  bool operator==(const PodEnd&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cause", self.cause);
    visit("pod", self.pod);
    visit("node", self.node);
    visit("word", self.word);
    visit("text", self.text);
  }
};

struct ExitStatus {
  int code = 0;                ///< the program's exit code; 0 if a signal ended it
  int signal = 0;              ///< the signal that ended it, or 0
  bool out_of_memory = false;  ///< a process was killed during its run because memory was used up
  bool stopped = false;        ///< Muster was asked to stop the task before it ended
  /// The end was not observed: its shim was killed or the machine restarted.
  bool lost = false;
  std::string error;                  ///< the shim's message if the program could not be started
  std::string advice;                 ///< advice on `error`, if the shim found a specific cause
  int64_t lost_log_bytes = 0;         ///< output missing in the log, because the disk was full
  std::optional<LimitReached> limit;  ///< empty: it reached no limit that is known
  std::optional<PodEnd> pod;          ///< empty: no pod, or it ended after its task

  bool succeeded() const { return code == 0 && signal == 0 && !lost; }
  /// The exit code of a shell: the code, or 128 + the signal; 137 for a lost task.
  int shell_code() const;

  bool operator==(const ExitStatus&) const = default;
  /// As part of a fact (job/fact.h).
  static void fields(auto& self, auto&& visit) {
    visit("code", self.code);
    visit("signal", self.signal);
    visit("out_of_memory", self.out_of_memory);
    visit("stopped", self.stopped);
    visit("lost", self.lost);
    visit("error", self.error);
    visit("advice", self.advice);
    visit("lost_log_bytes", self.lost_log_bytes);
    visit("limit", self.limit);
    visit("pod", self.pod);
  }
};

/// "exited with code 127: the command was not found"; "exited with code 0". Lost output is not
/// included: see lost_output().
std::string explain(const ExitStatus& status);

/// "Kubernetes evicted its pod on node n1: The node was low on resource: memory (Evicted)".
std::string explain(const PodEnd& end);

/// Whether explain() contains a reason, not only the code or signal.
bool names_cause(const ExitStatus& status);

/// With SIGKILL, or the code that stands for it: by the kernel or by a user.
bool was_killed(const ExitStatus& status);

/// Code 127, which shells and the shim use for a missing program.
bool was_not_found(const ExitStatus& status);

/// Advice, or empty if there is none beyond reading the log.
std::string advice_for(const ExitStatus& status);

/// "1234 bytes of its output are lost: the disk of its log was full"; empty: the log is complete.
std::string lost_output(const ExitStatus& status);

}  // namespace muster::job
