// What a cluster's own scheduler reports about a job: Slurm about its allocation, Kubernetes about
// its pods. Facts as in job/fact.h. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/eviction.h"
#include "job/fact_parts.h"

namespace muster::job {

// --- jobs that wait or run in Slurm

/// Why it waits for an allocation of Slurm.
struct SlurmWaits {
  static constexpr std::string_view kKind = "slurm_waits";
  enum class Stage {
    kToBeSent,  ///< not yet submitted, because of `text`
    kUnsure,    ///< it was submitted, and the reply was lost
    kSent,
    kPending,     ///< for Slurm's `reason`
    kCompleting,  ///< Slurm is still ending its previous processes
    kSuspended,
    kConfiguring,  ///< Slurm boots or prepares `nodes`
    kStarting,     ///< on `nodes`
    kCallingBack,  ///< `nodes` have not called back yet
    kAway,         ///< Slurm's controller has not answered since `since`
    kEarlier,      ///< Slurm is still ending its previous Slurm job
  };
  Stage stage = Stage::kSent;
  uint64_t slurm_job = 0;  ///< 0: none yet
  std::string reason;      ///< Slurm's reason code: "Resources"; empty: none
  std::string text;        ///< the meaning of `reason`
  std::vector<std::string> nodes;
  std::optional<base::Time> expected;  ///< Slurm's estimate of the start
  bool names_day = false;              ///< the estimate is on another day
  std::optional<base::Time> since;

  bool operator==(const SlurmWaits&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("stage", self.stage);
    visit("slurm_job", self.slurm_job);
    visit("reason", self.reason);
    visit("text", self.text);
    visit("nodes", self.nodes);
    visit("expected", self.expected);
    visit("names_day", self.names_day);
    visit("since", self.since);
  }
};

/// A detail: its place in Slurm's queue.
struct SlurmQueue {
  static constexpr std::string_view kKind = "slurm_queue";
  std::string partition;
  std::string account;
  std::string qos;

  bool operator==(const SlurmQueue&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("partition", self.partition);
    visit("account", self.account);
    visit("qos", self.qos);
  }
};

/// The state of a job with an allocation.
struct SlurmState {
  static constexpr std::string_view kKind = "slurm_state";
  enum class What { kSuspended, kEnding, kAway };
  What what = What::kSuspended;
  uint64_t slurm_job = 0;
  std::optional<base::Time> since;  ///< kAway
  bool over = false;                ///< the condition has ended

  bool operator==(const SlurmState&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("what", self.what);
    visit("slurm_job", self.slurm_job);
    visit("since", self.since);
    visit("over", self.over);
  }
};

/// Why the pods of a job that starts on Kubernetes do not run yet: what the pod that is farthest
/// behind waits for.
struct KubernetesWaits {
  static constexpr std::string_view kKind = "kubernetes_waits";
  enum class Stage {
    kToBeCreated,    ///< the API server has not accepted it yet: see `text`
    kUnschedulable,  ///< the cluster's scheduler finds no node for it
    kImage,          ///< its node cannot get an image, and tries again
    kCreating,       ///< its node prepares it
    kInitContainer,  ///< an init container of the job runs: `container`
    kStarting,       ///< its node starts its container
    kConnecting,     ///< its muster-node does not answer yet
    kAway,           ///< the API server does not answer
  };
  Stage stage = Stage::kToBeCreated;
  std::string pod;
  std::string task;
  int others = 0;  ///< further pods that do not run yet
  std::string node;
  std::string image;
  std::string container;
  std::string word;  ///< Kubernetes' reason: "Unschedulable", "ErrImagePull"; empty: none
  std::string text;  ///< Kubernetes' own sentence; may be empty

  bool operator==(const KubernetesWaits&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("stage", self.stage);
    visit("pod", self.pod);
    visit("task", self.task);
    visit("others", self.others);
    visit("node", self.node);
    visit("image", self.image);
    visit("container", self.container);
    visit("word", self.word);
    visit("text", self.text);
  }
};

/// It is about to request an allocation, perhaps after it lost the previous one.
struct RequestsAllocation {
  static constexpr std::string_view kKind = "asks_for_room";
  std::string cluster;
  std::optional<AllocationEnd> after;

  bool operator==(const RequestsAllocation&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cluster", self.cluster);
    visit("after", self.after);
  }
};

/// In a forecast: the cluster's own scheduler decides.
struct ClusterDecides {
  static constexpr std::string_view kKind = "cluster_decides";
  std::string cluster;
  int tasks = 0;

  bool operator==(const ClusterDecides&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cluster", self.cluster);
    visit("tasks", self.tasks);
  }
};

}  // namespace muster::job
