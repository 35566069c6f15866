// Why a job was evicted: its attempt was ended for other jobs, for its node or for its user, and it
// waits again. Facts as in job/fact.h. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/exit_status.h"
#include "job/fact_parts.h"

namespace muster::job {

/// Another project claims its share.
struct Reclaimed {
  static constexpr std::string_view kKind = "reclaimed";
  JobRef by;
  /// The project that loses resources, then the project that gets them.
  std::vector<ProjectShare> shares;
  std::vector<Resource> compared;  ///< the resources that were compared
  bool expected = false;           ///< in a forecast: the eviction has not happened

  bool operator==(const Reclaimed&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("by", self.by);
    visit("shares", self.shares);
    visit("compared", self.compared);
    visit("expected", self.expected);
  }
};

/// For a job of its project with a higher priority.
struct Preempted {
  static constexpr std::string_view kKind = "preempted";
  JobRef by;
  int by_priority = 0;
  int priority = 0;
  bool expected = false;

  bool operator==(const Preempted&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("by", self.by);
    visit("by_priority", self.by_priority);
    visit("priority", self.priority);
    visit("expected", self.expected);
  }
};

/// The job is restarted on other nodes at once.
struct Moved {
  static constexpr std::string_view kKind = "moved";
  JobRef so_that;  ///< this job gets contiguous resources
  bool expected = false;

  bool operator==(const Moved&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("so_that", self.so_that);
    visit("expected", self.expected);
  }
};

/// The job ran below its minimum for longer than the grace period.
struct Stale {
  static constexpr std::string_view kKind = "stale";
  int running = 0;
  int minimum = 0;
  std::chrono::milliseconds grace{0};

  bool operator==(const Stale&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("running", self.running);
    visit("minimum", self.minimum);
    visit("grace", self.grace);
  }
};

struct NodeDrained {
  static constexpr std::string_view kKind = "node_drained";
  std::string node;

  bool operator==(const NodeDrained&) const = default;
  static void fields(auto& self, auto&& visit) { visit("node", self.node); }
};

/// Workers were lost, and too few are left.
struct TooFewWorkers {
  static constexpr std::string_view kKind = "too_few_workers";
  int minimum = 0;

  bool operator==(const TooFewWorkers&) const = default;
  static void fields(auto& self, auto&& visit) { visit("minimum", self.minimum); }
};

/// Suspended by its user, until it is resumed.
struct SuspendedByUser {
  static constexpr std::string_view kKind = "suspended";

  bool operator==(const SuspendedByUser&) const = default;
  static void fields(auto&, auto&&) {}
};

/// Why a gang's Slurm job or its resources ended.
struct SlurmEnded {
  static constexpr std::string_view kKind = "slurm_ended";
  enum class Cause {
    kOther,  ///< see `text`
    kTimeLimit,
    kDeadline,
    kOutOfMemory,
    kBootFailed,
    kNodeFailed,
    kPreempted,
    kCancelled,     ///< by `user`, if known
    kForgotten,     ///< Slurm has no record of it
    kEndedEarly,    ///< in `state` with `code` or `signal`, before its tasks had ended
    kNeverBegan,    ///< the same, before its nodes had called back
    kLate,          ///< `nodes` did not call back within `bound`
    kRequeued,      ///< by Slurm or by an administrator
    kRequeuedNode,  ///< `nodes` is down, and Slurm requeued the job
    kNodeDown,      ///< `nodes` is down, which ended the job
    kSilent,        ///< the shim of `task` on `nodes` has not answered for a long time
  };
  Cause cause = Cause::kOther;
  uint64_t slurm_job = 0;
  std::vector<std::string> nodes;
  std::string task;
  std::string user;
  std::string state;
  int code = 0;
  int signal = 0;
  std::chrono::milliseconds bound{0};
  std::string text;

  bool operator==(const SlurmEnded&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cause", self.cause);
    visit("slurm_job", self.slurm_job);
    visit("nodes", self.nodes);
    visit("task", self.task);
    visit("user", self.user);
    visit("state", self.state);
    visit("code", self.code);
    visit("signal", self.signal);
    visit("bound", self.bound);
    visit("text", self.text);
  }
};

/// Kubernetes ended the pods of a gang that waits in a queue of the cluster or was placed by it.
struct KubernetesEnded {
  static constexpr std::string_view kKind = "kubernetes_ended";
  std::optional<PodEnd> pod;  ///< of the first pod that was ended; empty: see `text`
  std::string text;           ///< why its pods did not all start

  bool operator==(const KubernetesEnded&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("pod", self.pod);
    visit("text", self.text);
  }
};

/// How a cluster ended the allocation of a gang.
using AllocationEnd = std::variant<SlurmEnded, KubernetesEnded>;

/// A Remark is the sentence of an eviction of a kind that a client does not support.
using Eviction = std::variant<SuspendedByUser, Reclaimed, Preempted, Moved, Stale, NodeDrained,
                              TooFewWorkers, SlurmEnded, KubernetesEnded, Remark>;

/// The end as a Fact, an Eviction or a FailureCause.
template <class Wider>
Wider widened(const AllocationEnd& end) {
  return std::visit([](const auto& known) { return Wider(known); }, end);
}

}  // namespace muster::job
