// A job as the server knows it: its spec, where it stands, and what happened to it so far.
//
// Plain values; the control loop is their one writer.
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

enum class Role {
  kLauncher,
  kWorker,
  kSingle,
  kChief,            ///< of a kGrpc job: its first worker, which leads
  kParameterServer,  ///< "ps"
  kMaster,           ///< of a kTorch job: rank 0
  kEvaluator,        ///< of a kGrpc job: reads checkpoints; no part of the cluster
};

std::string_view to_string(Role role);
std::optional<Role> role_of(std::string_view name);

enum class TaskPhase { kPending, kStarting, kRunning, kEnded };

std::string_view to_string(TaskPhase phase);
std::optional<TaskPhase> task_phase_of(std::string_view name);

struct Task {
  std::string name;  ///< launcher, chief, master, worker-0, ps-0, evaluator-0, main
  Role role = Role::kSingle;
  std::string hostname;  ///< dist-worker-0
  /// Its number in the gang as the scheduler counts. A worker that takes the place of one that was
  /// lost has that one's number and a name of its own.
  int seat = 0;
  std::string node;          ///< where it was placed; empty while it waits
  std::vector<int> devices;  ///< its GPUs there
  int gpu_share_milli = 0;   ///< of each of them: 1000, or a part of one
  TaskPhase phase = TaskPhase::kPending;
  std::optional<ExitStatus> exit;
  std::optional<Time> started;
  std::optional<Time> ended;
  /// It ended, or is being ended, while its job goes on: its seat is free, or another's.
  bool left = false;

  bool operator==(const Task&) const = default;
};

/// How the ranks of an MPI job were started, once that is known.
struct LaunchFacts {
  LaunchBy by = LaunchBy::kAuto;  ///< how it was; kAuto: not known yet
  std::string why;                ///< "the images have sshd and ssh"
  std::string mpi;                ///< "Open MPI 4.1.4", as its mpirun says; empty: not known

  bool operator==(const LaunchFacts&) const = default;
};

/// Why a job failed: the first task at fault, the cause, its last lines, what to try.
struct Failure {
  std::string task;
  std::optional<int> rank;  ///< of the MPI program, where one is known to have failed first
  FailureCause cause;
  std::string advice;
  std::vector<std::string> last_lines;

  bool operator==(const Failure&) const = default;
};

struct Job {
  std::string id;  ///< never reused; names its folder
  JobSpec spec;
  std::string owner;  ///< the user who submitted it
  Phase phase = Phase::kQueued;
  Reason reason;                  ///< why it waits, or what it does right now
  std::optional<Time> may_start;  ///< while it waits: when room is expected to be free
  int attempt = 0;                ///< how often its gang was started; 0: never
  int restarts = 0;  ///< how often an attempt of it was given up for another; MUSTER_RESTART_COUNT
  int retries_used = 0;                    ///< of spec.scheduling.retries
  std::vector<std::string> avoided_nodes;  ///< by its retry rules
  bool suspended = false;                  ///< waits for `resume`, and for nothing else
  bool stop_requested = false;
  /// It is being evicted: why; when all of it has gone it is Queued again.
  std::optional<Eviction> eviction;
  Time submitted;
  std::optional<Time> started;  ///< when it entered Running
  std::optional<Time> ended;
  std::optional<int> exit_code;  ///< of the task that decides; set when the job is final
  std::optional<Failure> failure;
  std::optional<LaunchFacts> launch;  ///< of the last attempt of a kMpi job
  /// While an elastic job runs: the launch::GangSeed of its attempt, which workers that join are
  /// planned with. Sealed with the server's key; empty where it has none.
  std::string sealed_seed;
  /// The store has a record of it that cannot be read. Only the id, the name and the project are
  /// known, and no change of it is taken. Never stored.
  bool unreadable = false;
  /// As its program reports it. Never stored: looked at when the job is shown.
  std::optional<Progress> progress;
  /// Of an ended job: when it is removed by itself. Never stored: the server's settings say it.
  std::optional<Time> kept_until;
  std::vector<Task> tasks;
  std::vector<Event> events;

  bool operator==(const Job&) const = default;
};

/// The tasks that a spec asks for, in the order of their seats and as they are listed: the leader
/// first, then workers, parameter servers, evaluators. Those that join a job that runs come behind.
std::vector<Task> tasks_of(const JobSpec& spec);

/// A worker for this seat under a name that no task of the job has had in this attempt.
Task next_worker(const Job& job, int seat);

/// What the tasks of a role need.
const Resources& resources_of(const JobSpec& spec, Role role);

/// The task whose end ends the job: its leader, or the single task.
const Task& deciding_task(const Job& job);

// The fields of what a Job is made of, one row each (record/table.h): what the API tells of it and
// what the store keeps. The rows of Job itself tell facts as sentences: words/job_table.h.

const record::Table& table_of(const Task*);
const record::Table& table_of(const ExitStatus*);
const record::Table& table_of(const LaunchFacts*);
const record::Table& table_of(const Progress*);

record::Words<Phase> words_of(const Phase*);
record::Words<Role> words_of(const Role*);
record::Words<TaskPhase> words_of(const TaskPhase*);

// What an elastic job is: one that may run with fewer workers than it asks for, and whose workers
// come and go while it runs.
//
// Pure.

inline bool is_elastic(const JobSpec& spec) {
  return spec.scheduling.min_workers.value_or(spec.workers) < spec.workers;
}

/// With how few workers a job of this kind can be told to run: a launcher needs one to start ranks
/// in; a master, a chief trains by itself.
inline int fewest_workers(Kind kind) {
  return kind == Kind::kMpi ? 1 : 0;
}

/// Whether a task has left its job and ended: it holds nothing any more, though it is still listed
/// with the place that it had.
inline bool has_gone(const Task& task) {
  return task.left && task.phase == TaskPhase::kEnded;
}

}  // namespace muster::job
