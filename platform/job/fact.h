// Facts about a job: why it waits, why it was evicted, what happened to it. Each fact is a struct
// of ids and numbers; words::sentence() makes a sentence of it for one reader, as the last step. No
// code parses a sentence.
//
// A fact names other jobs and projects only by JobRef, ProjectRef, Holders, ProjectShare and
// Others: words::seen_by() removes from these what a reader may not see, without any knowledge of
// the fact.
//
// Waits, evictions, the causes of failures and the words of clusters have headers of their own
// (job/wait_fact.h, job/eviction.h, job/failure_cause.h, job/cluster_fact.h). A new fact is a struct here or there with kKind and fields(), an
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
#include "job/cluster_fact.h"
#include "job/eviction.h"
#include "job/exit_status.h"
#include "job/fact_parts.h"
#include "job/failure_cause.h"
#include "job/wait_fact.h"

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

// --- what happens to a job

struct Evicted {
  static constexpr std::string_view kKind = "evicted";
  enum class Stage { kNotified, kBeingEnded, kWaitsAgain };
  Eviction why;
  Stage stage = Stage::kNotified;

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

// --- what a job does now

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
                 Runs, WaitsForJobs, WaitsUntil, WaitsForSingleton, WaitsForIsolation>;

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
