// Facts about a job: why it waits, why it was evicted, what happened to it. Each fact is a struct
// of ids and numbers; words::sentence() makes a sentence of it for one reader, as the last step. No
// code parses a sentence.
//
// A fact names other jobs and projects only by JobRef, ProjectRef, Holders, ProjectShare and
// Others: words::seen_by() removes from these what a reader may not see, without any knowledge of
// the fact.
//
// Evictions and the causes of failures have headers of their own (job/eviction.h,
// job/failure_cause.h). A new fact is a struct here or there with kKind and fields(), an
// alternative of Fact, and a sentence in words/sentence.cc. JSON, the store and the removal of
// names follow from fields().
//
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "job/eviction.h"
#include "job/exit_status.h"
#include "job/fact_parts.h"
#include "job/failure_cause.h"

namespace muster::job {

// --- facts without fields

/// Facts without fields.
struct Notice {
  static constexpr std::string_view kKind = "notice";
  enum class What {
    kWaitsForScheduler,
    kNotItsTurn,
    kRoomButNotItsTurn,
    kSubmitted,
    kStarts,
    kStartsWorkers,
    kRunning,
    kTakenUp,
    kImagesGivenUp,
    kAskedToStop,
    kAskedToStopNow,
    kBeingStopped,
    kBeingEnded,
    kDone,
    kWasStopped,
    kWasSuspended,
    kSuspendedAndGone,
    kEvictedAndGone,
    kResumed,
  };
  What what = What::kSubmitted;

  bool operator==(const Notice&) const = default;
  static void fields(auto& self, auto&& visit) { visit("what", self.what); }
};

// --- why a job waits for the scheduler

/// Its project, or a project above it, is at its limit; or the job is not preemptible, and the
/// quota is used up.
struct OverCapacity {
  static constexpr std::string_view kKind = "over_capacity";
  std::string job;  ///< the waiting job
  ProjectRef project;
  bool is_quota = false;  ///< the quota of jobs that are not preemptible; otherwise a limit
  Resource resource = Resource::kGpu;
  int64_t bound = 0;
  int64_t allocated = 0;
  int64_t requested = 0;

  bool operator==(const OverCapacity&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("project", self.project);
    visit("is_quota", self.is_quota);
    visit("resource", self.resource);
    visit("bound", self.bound);
    visit("allocated", self.allocated);
    visit("requested", self.requested);
  }
};

/// No set of nodes has room for it.
struct NoRoom {
  static constexpr std::string_view kKind = "no_room";
  /// True: it can start when other jobs end; false: it could not start on an empty cluster either.
  bool ever = true;
  int tasks = 0;                       ///< of the minimum
  int placed = 0;                      ///< the largest number of these for which there is room
  Claim claim;                         ///< the claim of the task without room
  bool alike = true;                   ///< all tasks have this claim
  std::string topology;                ///< the required level; empty: none
  int nodes = 0;                       ///< the nodes that it may use
  int cordoned = 0;                    ///< further nodes, which are cordoned
  int64_t free_gpu_milli = 0;          ///< the sum over `nodes`
  int64_t largest_free_gpu_milli = 0;  ///< the maximum over `nodes`
  int64_t largest_free_cpu_milli = 0;
  int64_t largest_free_memory_bytes = 0;
  // The number of nodes that lack each resource for one more task. A node may lack several.
  int lack_gpu = 0;
  int lack_cpu = 0;
  int lack_memory = 0;
  int lack_task_slots = 0;
  // The nodes that it may use; only if there are none.
  std::vector<std::string> pools;
  std::vector<std::string> gpu_models;
  std::vector<std::string> labels;  ///< "zone=a"
  std::vector<std::string> excluded_nodes;

  bool operator==(const NoRoom&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("ever", self.ever);
    visit("tasks", self.tasks);
    visit("placed", self.placed);
    visit("claim", self.claim);
    visit("alike", self.alike);
    visit("topology", self.topology);
    visit("nodes", self.nodes);
    visit("cordoned", self.cordoned);
    visit("free_gpu_milli", self.free_gpu_milli);
    visit("largest_free_gpu_milli", self.largest_free_gpu_milli);
    visit("largest_free_cpu_milli", self.largest_free_cpu_milli);
    visit("largest_free_memory_bytes", self.largest_free_memory_bytes);
    visit("lack_gpu", self.lack_gpu);
    visit("lack_cpu", self.lack_cpu);
    visit("lack_memory", self.lack_memory);
    visit("lack_task_slots", self.lack_task_slots);
    visit("pools", self.pools);
    visit("gpu_models", self.gpu_models);
    visit("labels", self.labels);
    visit("excluded_nodes", self.excluded_nodes);
  }
};

/// Its project is unknown, or has subprojects.
struct NoProject {
  static constexpr std::string_view kKind = "no_project";
  std::string project;
  bool has_children = false;

  bool operator==(const NoProject&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("project", self.project);
    visit("has_children", self.has_children);
  }
};

/// The free resources are reserved for a job that precedes it.
struct Reserved {
  static constexpr std::string_view kKind = "reserved";
  JobRef held_for;

  bool operator==(const Reserved&) const = default;
  static void fields(auto& self, auto&& visit) { visit("held_for", self.held_for); }
};

/// It has placements, and evicted tasks are still leaving them.
struct Promised {
  static constexpr std::string_view kKind = "promised";
  int tasks = 0;
  Others leaving;

  bool operator==(const Promised&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("tasks", self.tasks);
    visit("leaving", self.leaving);
  }
};

/// In a forecast: it would start after these jobs have been evicted.
struct AfterEvictions {
  static constexpr std::string_view kKind = "after_evictions";
  Others jobs;

  bool operator==(const AfterEvictions&) const = default;
  static void fields(auto& self, auto&& visit) { visit("jobs", self.jobs); }
};

struct TriedAgain {
  static constexpr std::string_view kKind = "tried_again";
  int64_t in_seconds = 0;

  bool operator==(const TriedAgain&) const = default;
  static void fields(auto& self, auto&& visit) { visit("in_seconds", self.in_seconds); }
};

/// A detail: the holders of the resources that it needs, in the pool, or in a project that is at
/// its limit.
struct HeldByOthers {
  static constexpr std::string_view kKind = "held_by";
  std::optional<ProjectRef> below;
  Holders holders;

  bool operator==(const HeldByOthers&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("below", self.below);
    visit("holders", self.holders);
  }
};

// --- why the scheduler does not get a job yet

/// It starts after other jobs, some of which have not ended yet.
struct WaitsForJobs {
  static constexpr std::string_view kKind = "waits_for_jobs";
  std::vector<AwaitedEnd> jobs;  ///< those that have not ended

  bool operator==(const WaitsForJobs&) const = default;
  static void fields(auto& self, auto&& visit) { visit("jobs", self.jobs); }
};

struct WaitsUntil {
  static constexpr std::string_view kKind = "waits_until";
  base::Time begin;

  bool operator==(const WaitsUntil&) const = default;
  static void fields(auto& self, auto&& visit) { visit("begin", self.begin); }
};

/// An earlier job with the same singleton has not ended.
struct WaitsForSingleton {
  static constexpr std::string_view kKind = "waits_for_singleton";
  JobRef job;
  std::string singleton;

  bool operator==(const WaitsForSingleton&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("singleton", self.singleton);
  }
};

// --- what happens to a job

struct Evicted {
  static constexpr std::string_view kKind = "evicted";
  enum class Stage { kToldSo, kBeingEnded, kWaitsAgain };
  Eviction why;
  Stage stage = Stage::kToldSo;

  bool operator==(const Evicted&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("why", self.why);
    visit("stage", self.stage);
  }
};

/// Suspended, or held since its submission.
struct Suspended {
  static constexpr std::string_view kKind = "suspended";
  std::string job;
  bool held = false;

  bool operator==(const Suspended&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("job", self.job);
    visit("held", self.held);
  }
};

struct Placed {
  static constexpr std::string_view kKind = "placed";
  std::vector<std::string> nodes;
  uint64_t slurm_job = 0;  ///< 0: the resources do not come from Slurm
  int attempt = 0;
  std::optional<Workers> workers;  ///< for an elastic job

  bool operator==(const Placed&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("nodes", self.nodes);
    visit("slurm_job", self.slurm_job);
    visit("attempt", self.attempt);
    visit("workers", self.workers);
  }
};

struct PhaseReached {
  static constexpr std::string_view kKind = "phase";
  Phase phase = Phase::kQueued;

  bool operator==(const PhaseReached&) const = default;
  static void fields(auto& self, auto&& visit) { visit("phase", self.phase); }
};

// --- why a job failed, and how it continues

/// Why a failed job starts again.
struct Retry {
  enum class Cost {
    kCounted,    ///< retry number `number` of `of`
    kNone,       ///< the failure is not the job's fault
    kAvoidsNode  ///< a rule keeps the job off `node`; it costs no retry
  };
  Cost cost = Cost::kCounted;
  int number = 0;
  int of = 0;
  std::string node;
  /// Because of a retry rule of the job with this exit code and pattern.
  bool by_rule = false;
  std::optional<int> exit_code;  ///< nothing: any
  std::string log_pattern;       ///< empty: any

  bool operator==(const Retry&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cost", self.cost);
    visit("number", self.number);
    visit("of", self.of);
    visit("node", self.node);
    visit("by_rule", self.by_rule);
    visit("exit_code", self.exit_code);
    visit("log_pattern", self.log_pattern);
  }
};

struct Failed {
  static constexpr std::string_view kKind = "failed";
  FailureCause cause;

  bool operator==(const Failed&) const = default;
  static void fields(auto& self, auto&& visit) { visit("cause", self.cause); }
};

/// After a failure that is not final.
struct StartsAgain {
  static constexpr std::string_view kKind = "starts_again";
  FailureCause cause;
  Retry retry;

  bool operator==(const StartsAgain&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("cause", self.cause);
    visit("retry", self.retry);
  }
};

/// An attempt was abandoned through no fault of the job, and another follows.
struct AttemptAbandoned {
  static constexpr std::string_view kKind = "attempt_abandoned";
  enum class Why {
    kPortTaken,   ///< `port`, chosen for `task`; 0: unknown
    kNamesTaken,  ///< see the engine's `error`
    kEngineAway,  ///< see the engine's `error`
    kNodeGone,    ///< `node`
    kNodeSilent,  ///< `node` does not answer
    kNodeChanged,
    kServerRestarted,  ///< while the job was starting
  };
  Why why = Why::kNodeChanged;
  std::string task;
  int port = 0;
  std::string node;
  std::string error;

  bool operator==(const AttemptAbandoned&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("why", self.why);
    visit("task", self.task);
    visit("port", self.port);
    visit("node", self.node);
    visit("error", self.error);
  }
};

struct EveryWorkerAnswers {
  static constexpr std::string_view kKind = "every_worker_answers";
  std::string leader;

  bool operator==(const EveryWorkerAnswers&) const = default;
  static void fields(auto& self, auto&& visit) { visit("leader", self.leader); }
};

/// The engine does not run images: its tasks see the machine's files.
struct ImageNotRun {
  static constexpr std::string_view kKind = "image_not_run";
  std::string image;
  bool has_stand_in = false;

  bool operator==(const ImageNotRun&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("image", self.image);
    visit("has_stand_in", self.has_stand_in);
  }
};

struct LooksForImages {
  static constexpr std::string_view kKind = "looks_for_images";
  std::vector<std::string> images;

  bool operator==(const LooksForImages&) const = default;
  static void fields(auto& self, auto&& visit) { visit("images", self.images); }
};

/// A node pulls an image for the job.
struct FetchesImage {
  static constexpr std::string_view kKind = "fetches_image";
  std::string node;
  std::string image;
  int64_t done_megabytes = 0;
  int64_t all_megabytes = 0;  ///< 0: unknown yet

  bool operator==(const FetchesImage&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("node", self.node);
    visit("image", self.image);
    visit("done_megabytes", self.done_megabytes);
    visit("all_megabytes", self.all_megabytes);
  }
};

struct ImagesThere {
  static constexpr std::string_view kKind = "images_there";
  std::chrono::milliseconds after{0};

  bool operator==(const ImagesThere&) const = default;
  static void fields(auto& self, auto&& visit) { visit("after", self.after); }
};

struct NodeSilence {
  static constexpr std::string_view kKind = "node_silence";
  std::string node;
  bool silent = true;  ///< false: it answers again

  bool operator==(const NodeSilence&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("node", self.node);
    visit("silent", self.silent);
  }
};

/// Workers leave an elastic job, which continues.
struct WorkersLeave {
  static constexpr std::string_view kKind = "workers_leave";
  std::vector<std::string> tasks;
  Eviction why;
  Workers left;

  bool operator==(const WorkersLeave&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("tasks", self.tasks);
    visit("why", self.why);
    visit("left", self.left);
  }
};

struct WorkerLost {
  static constexpr std::string_view kKind = "worker_lost";
  std::string task;
  ExitStatus exit;
  Workers left;

  bool operator==(const WorkerLost&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("task", self.task);
    visit("exit", self.exit);
    visit("left", self.left);
  }
};

struct WorkerJoins {
  static constexpr std::string_view kKind = "worker_joins";
  std::string task;
  std::string node;  ///< empty: it has joined
  Workers now;

  bool operator==(const WorkerJoins&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("task", self.task);
    visit("node", self.node);
    visit("now", self.now);
  }
};

struct WorkerDidNotJoin {
  static constexpr std::string_view kKind = "worker_did_not_join";
  std::string what;
  std::optional<Workers> left;  ///< nothing: too few are left

  bool operator==(const WorkerDidNotJoin&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("what", self.what);
    visit("left", self.left);
  }
};

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

struct SilentNode {
  std::string node;
  std::string since;

  bool operator==(const SilentNode&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("node", self.node);
    visit("since", self.since);
  }
};

struct Runs {
  static constexpr std::string_view kKind = "runs";
  std::optional<Workers> workers;  ///< for a job whose workers join and leave
  std::vector<SilentNode> silent;  ///< its silent nodes
  std::optional<SlurmState> in_slurm;

  bool operator==(const Runs&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("workers", self.workers);
    visit("silent", self.silent);
    visit("in_slurm", self.in_slurm);
  }
};

// --- the variant of all facts

using Fact =
    std::variant<Remark, Notice, OverCapacity, NoRoom, NoProject, Reserved, Promised,
                 AfterEvictions, TriedAgain, HeldByOthers, Evicted, Suspended, Placed, PhaseReached,
                 Failed, StartsAgain, AttemptAbandoned, RanksAstray, EveryWorkerAnswers,
                 ImageNotRun, LooksForImages, FetchesImage, ImagesThere, NodeSilence, WorkersLeave,
                 WorkerLost, WorkerJoins, WorkerDidNotJoin, SlurmWaits, SlurmQueue, SlurmState,
                 SlurmEnded, KubernetesEnded, KubernetesWaits, RequestsAllocation, ClusterDecides,
                 Runs, WaitsForJobs, WaitsUntil, WaitsForSingleton>;

/// A detail of a reason: the holders of the resources, or a remedy.
struct Detail {
  Fact what;
  std::string pool;  ///< the pool to which it applies; empty: all, or the only one

  Detail() = default;
  template <class T>
    requires std::is_constructible_v<Fact, T>
  Detail(T&& fact, std::string in_pool = {})  // NOLINT(google-explicit-constructor)
      : what(std::forward<T>(fact)), pool(std::move(in_pool)) {}
  bool operator==(const Detail&) const = default;
};

/// Why a job waits, or what it does now.
struct Reason {
  Fact what;
  std::vector<Detail> details;

  Reason() = default;
  template <class T>
    requires std::is_constructible_v<Fact, T>
  Reason(T&& fact, std::vector<Detail> with = {})  // NOLINT(google-explicit-constructor)
      : what(std::forward<T>(fact)), details(std::move(with)) {}
  bool operator==(const Reason&) const = default;
};

/// Whether there is no reason.
inline bool is_empty(const Reason& reason) {
  const auto* const remark = std::get_if<Remark>(&reason.what);
  return remark != nullptr && remark->text.empty() && reason.details.empty();
}

/// In an error: why a job could never start.
struct NeverStarts : base::ErrorDetail {
  NeverStarts(std::string name, Reason why) : job(std::move(name)), reason(std::move(why)) {}
  std::string job;
  Reason reason;
};

struct Event {
  /// No two events of a server have the same time, which therefore also identifies them.
  base::Time time;
  Fact what;

  bool operator==(const Event&) const = default;
};

}  // namespace muster::job
