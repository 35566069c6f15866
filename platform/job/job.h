// A job in the server: its spec, its state, and its history.
//
// Plain values. Only the control loop writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "job/exit_status.h"
#include "job/fact.h"
#include "job/metric.h"
#include "job/spec.h"
#include "job/spec_table.h"

namespace muster::job {

using base::Time;

enum class TaskRole {
  kLauncher,
  kWorker,
  kSingle,
  kChief,            ///< of a kGrpc job: its first worker, which leads
  kParameterServer,  ///< "ps"
  kMaster,           ///< of a kTorch job: rank 0
  kEvaluator,        ///< of a kGrpc job: reads checkpoints; no part of the cluster
};

std::string_view to_string(TaskRole role);
std::optional<TaskRole> role_of(std::string_view name);

enum class TaskPhase { kPending, kStarting, kRunning, kEnded };

std::string_view to_string(TaskPhase phase);
std::optional<TaskPhase> task_phase_of(std::string_view name);

struct Task {
  std::string name;  ///< launcher, chief, master, worker-0, ps-0, evaluator-0, main
  TaskRole role = TaskRole::kSingle;
  std::string hostname;  ///< dist-worker-0
  /// Its number in the gang for the scheduler. A replacement for a lost worker has the number of
  /// the lost worker and a new name.
  int seat = 0;
  std::string node;          ///< where it was placed; empty while it waits
  std::vector<int> devices;  ///< its GPUs there
  int gpu_share_milli = 0;   ///< of each of them: 1000, or a part of one
  TaskPhase phase = TaskPhase::kPending;
  std::optional<ExitStatus> exit;
  std::optional<Time> started;
  std::optional<Time> ended;
  /// It ended, or is being ended, while its elastic job continues without it.
  bool left = false;

  bool operator==(const Task&) const = default;
};

/// How the ranks of an MPI job were started, once that is known.
struct LaunchFacts {
  LaunchBy by = LaunchBy::kAuto;  ///< kAuto: not known yet
  std::string why;                ///< "the images have sshd and ssh"
  std::string mpi;                ///< "Open MPI 4.1.4", printed by mpirun; empty: not known

  bool operator==(const LaunchFacts&) const = default;
};

/// Why a job failed: the first task at fault, the cause, its last lines, and a remedy.
struct Failure {
  std::string task;
  std::optional<int> rank;  ///< of the MPI program, if it is known which rank failed first
  FailureCause cause;
  std::string advice;
  std::vector<std::string> last_lines;

  bool operator==(const Failure&) const = default;
};

/// The object from which a job was made.
struct JobOrigin {
  enum class Kind { kRerun, kArray, kSweep, kSchedule };
  Kind kind = Kind::kRerun;
  std::string name;  ///< of the job that it repeats, or of its array, sweep or schedule
  std::string id;    ///< of the same
  int member = 0;    ///< kArray: its index; kSweep: the number of the trial

  bool operator==(const JobOrigin&) const = default;
};

/// An entry of JobSpec::after, resolved when the job was submitted.
struct AwaitedJob {
  std::string id;  ///< of the other job or array
  std::string name;
  bool is_met = false;  ///< it has ended as required; true even after it was deleted

  bool operator==(const AwaitedJob&) const = default;
};

inline constexpr size_t kJobIdLength = 12;  ///< letters and digits

struct Job {
  std::string id;  ///< never reused; names its folder
  std::optional<JobOrigin> origin;
  JobSpec spec;
  std::vector<AwaitedJob> awaited;  ///< one for each entry of spec.after, in that order
  std::string owner;                ///< the user who submitted it
  Phase phase = Phase::kQueued;
  Reason reason;                  ///< why it waits, or what it does now
  std::optional<Time> may_start;  ///< while it waits: when resources are expected to be free
  int attempt = 0;                ///< how often its gang was started; 0: never
  int restarts = 0;      ///< attempts that were abandoned for another; MUSTER_RESTART_COUNT
  int retries_used = 0;  ///< of spec.scheduling.retries
  std::vector<std::string> avoided_nodes;  ///< by its retry rules
  bool suspended = false;                  ///< waits only for `resume`
  bool stop_requested = false;
  /// Why it is being evicted. It is Queued again when all its tasks have ended.
  std::optional<Eviction> eviction;
  Time submitted;
  std::optional<Time> started;  ///< when it entered Running
  std::optional<Time> ended;
  std::optional<int> exit_code;  ///< of the deciding task; set when the job has ended
  std::optional<Failure> failure;
  std::optional<LaunchFacts> launch;  ///< of the last attempt of a kMpi job
  /// While an elastic job runs: the launch::GangSeed of its attempt, from which joining workers are
  /// planned. Sealed with the server's key; empty if the server has no key.
  std::string sealed_seed;
  /// The store's record of the job cannot be read: only the id, the name and the project are known,
  /// and the job cannot be changed. Never stored.
  bool unreadable = false;
  /// Reported by its program. Never stored: read when the job is shown.
  std::optional<Progress> progress;
  /// When the server removes the ended job. Never stored: it follows from the server's settings.
  std::optional<Time> kept_until;
  std::vector<Task> tasks;
  std::vector<Event> events;

  bool operator==(const Job&) const = default;
};

/// The tasks of a spec in the order of their seats: the leader, then workers, parameter servers and
/// evaluators. Workers that join a running job follow them.
std::vector<Task> tasks_of(const JobSpec& spec);

/// A worker for this seat, with a name that no task of this attempt has had.
Task next_worker(const Job& job, int seat);

/// The resources of the tasks of a role.
const Resources& resources_of(const JobSpec& spec, TaskRole role);

/// The task whose end ends the job: its leader, or the single task.
const Task& deciding_task(const Job& job);

// The fields of the parts of a Job, one row each (record/table.h), for the API and the store. The
// rows of Job itself contain sentences and are in words/job_table.h.

const record::Table& table_of(const Task*);
const record::Table& table_of(const ExitStatus*);
const record::Table& table_of(const LaunchFacts*);
const record::Table& table_of(const Progress*);
const record::Table& table_of(const JobOrigin*);
const record::Table& table_of(const AwaitedJob*);

record::Words<Phase> words_of(const Phase*);
record::Words<TaskRole> words_of(const TaskRole*);
record::Words<TaskPhase> words_of(const TaskPhase*);
record::Words<JobOrigin::Kind> words_of(const JobOrigin::Kind*);
record::Words<Limit> words_of(const Limit*);
record::Words<PodEnd::Cause> words_of(const PodEnd::Cause*);

/// An elastic job may run with fewer workers than it requests, and its workers join and leave while
/// it runs.
inline bool is_elastic(const JobSpec& spec) {
  return spec.scheduling.min_workers.value_or(spec.workers) < spec.workers;
}

/// The smallest min_workers of this kind: a launcher needs a worker to start ranks in, but a master
/// or a chief trains by itself.
inline int fewest_workers(Kind kind) {
  return kind == Kind::kMpi ? 1 : 0;
}

/// Whether a task has left its job and ended. It is still listed with its node, but holds no
/// resources.
inline bool has_gone(const Task& task) {
  return task.left && task.phase == TaskPhase::kEnded;
}

}  // namespace muster::job
