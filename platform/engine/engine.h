// The interface of an engine, which runs tasks. An engine starts the tasks of a gang, all or none,
// reports what happens to each, and keeps their logs. Queues, retries and the meaning of a job are
// not its concern.
//
// All calls and reports are on the EventLoop's thread. Every engine passes the conformance suite
// (engine/conformance_test.cc).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "base/text.h"
#include "engine/allocation.h"
#include "engine/image_request.h"
#include "engine/log_frame.h"
#include "engine/metric_log.h"
#include "job/exit_status.h"
#include "launch/choose_launch.h"
#include "launch/task_plan.h"

namespace muster::engine {

using base::Result;

/// One attempt of one job. Attempts share nothing that is left of an earlier attempt.
struct GangId {
  std::string job_id;
  int attempt = 0;

  auto operator<=>(const GangId&) const = default;
};

/// A machine that runs tasks. Its GPUs are numbered from 0, and all are of the same model.
struct Node {
  std::string name;
  std::string pool = "default";
  int task_slots = 0;
  int gpus = 0;
  /// A device plug-in chooses the GPUs of each task: numbers of GPUs only count them.
  bool anonymous_gpus = false;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;  ///< of each GPU; 0: unknown
  /// The name of each GPU in CUDA_VISIBLE_DEVICES; empty: its number.
  std::vector<std::string> gpu_names;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::string address;  ///< at which tasks on other nodes reach this one; empty: unreachable
  std::map<std::string, std::string> topology;  ///< level -> domain
  std::map<std::string, std::string> labels;
  /// Only for jobs that tolerate all of these: "dedicated=train:NoSchedule".
  std::vector<std::string> taints = {};

  bool operator==(const Node&) const = default;
};

// Labels of a node. A silent node does not answer now, but its tasks are not given up yet. A closed
// node answers, but accepts no new tasks.
inline constexpr const char* kSilentSince = "silent-since";  ///< since when it has not answered
inline constexpr const char* kFault = "fault";               ///< why it does not answer
inline constexpr const char* kClosedBy = "closed-by";        ///< the user who closed it

inline bool is_silent(const Node& node) {
  return node.labels.count(kSilentSince) > 0;
}

inline bool is_closed(const Node& node) {
  return node.labels.count(kClosedBy) > 0;
}

/// Marks a node as silent. If it is silent already, the earlier time is kept.
inline void call_silent(Node& node, base::Time since) {
  node.labels.emplace(kSilentSince, base::to_rfc3339(since, 0));
}

/// The task answers: its sshd has sent its greeting. A task without sshd answers when it has
/// started.
struct TaskAnswered {};

/// The task has ended with all of its processes.
struct TaskEnded {
  job::ExitStatus status;
  base::Time time;
};

/// The result of ranks() has changed for this task.
struct RanksChanged {};

using TaskNews = std::variant<TaskAnswered, TaskEnded, RanksChanged>;

struct TaskReport {
  GangId gang;
  std::string task;
  TaskNews what;
};

/// The task in which the rank census found a rank of an MPI program.
struct RankPlace {
  int rank = 0;  ///< or kReached, kHangs (engine/rank_files.h)
  int world_size = 0;
  std::string task;
};

enum class StopMode {
  kGraceful,  ///< SIGTERM, then SIGKILL after the task's grace period
  kNow,       ///< SIGKILL
};

/// The state in which a restarted server finds a task.
enum class AdoptionResult {
  kNothing,  ///< the task was never started, or its supervisor left no trace
  kRunning,  ///< reports follow as if this engine had started it
  kEnded,    ///< a TaskEnded report follows
};

/// Muster's own programs that run in a task, because the task may lack such a program.
enum class Helper {
  kNone,     ///< argv is a program of the task
  kPack,     ///< argv: PATH. The output is a tar of that file or folder
  kUnpack,   ///< argv: PATH. The input is a tar, which is unpacked to PATH
  kConnect,  ///< argv: PORT. Input and output are a connection to that port of the task
};

/// A running task, from the engine's own records.
struct RunningTask {
  GangId gang;
  std::string task;
  std::string node;
  std::vector<int> devices;  ///< numbers of its GPUs on the node
  int gpu_share_milli = 0;   ///< share of each device; 0 without devices
  /// Of its job, as the task's environment names them; empty: unknown.
  std::string job_name = {};
  std::string project = {};
};

/// A program to run in a running task, beside the task's own program.
struct ExecPlan {
  Helper helper = Helper::kNone;
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  ///< added to the task's environment
  bool terminal = false;                           ///< run it in a terminal of this size
  int rows = 24;
  int columns = 80;
};

struct ExecHandlers {
  std::function<void(std::string_view bytes, bool is_error)> on_output;
  std::function<void(job::ExitStatus)> on_exit;  ///< called once, after all output
  /// Called when at most Exec::kHigh bytes of input wait: writing can continue.
  std::function<void()> on_drain = {};
  /// The program has closed that output and may still be running. Not called for a terminal; not
  /// always called if the program has ended.
  std::function<void(bool is_error)> on_output_end = {};
};

/// The caller's end of such a program. Dropping it ends the program (SIGHUP, then SIGKILL).
class Exec {
 public:
  static constexpr size_t kHigh = 256 << 10;
  using Begun = std::function<void(Result<void>)>;

  virtual ~Exec() = default;
  /// Calls `on_begun` once, now or later, before any handler: the program runs, or the reason why
  /// it could not start, with the same errors as exec() and attach(). After an error no handler is
  /// called. A caller that does not use when_begun() gets this error as an exit with code 127.
  virtual void when_begun(Begun on_begun) { on_begun({}); }
  /// If waiting() exceeds kHigh, the caller should wait for on_drain before it writes more.
  virtual void write(std::string_view bytes) = 0;
  /// The number of bytes of input that the program has not accepted yet.
  virtual size_t waiting() const { return 0; }
  virtual void close_input() = 0;
  virtual void resize(int rows, int columns) = 0;
  /// While paused, output is held back, so that a slow reader is not flooded.
  virtual void pause(bool paused) = 0;
};

class Engine {
 public:
  using Done = std::function<void(Result<void>)>;
  using Listener = std::function<void(const TaskReport&)>;

  virtual ~Engine() = default;

  /// Whether tasks run in TaskPlan::image. If not, they see the machine's own files.
  virtual bool runs_images() const { return false; }

  /// Whether tasks are pods of Kubernetes, to which JobSpec::kubernetes applies.
  virtual bool runs_pods() const { return false; }

  /// Checks, before a job is accepted, whether this engine can run such a job at all. Does not
  /// contact anything. kInvalid or kRefused, with advice.
  virtual Result<void> check_spec(const job::JobSpec& spec) const {
    static_cast<void>(spec);
    return {};
  }

  /// Brings images to their nodes and inspects them. `progress` is called from time to time. `done`
  /// is called once, later, with the facts for each request, in order; never after the returned
  /// handle has been dropped, which cancels pending work. Only for an engine that runs images.
  ///
  /// Errors: kNotFound (no such image), kRefused (by the registry, or an image for another
  /// processor), kUnavailable (the node's engine).
  using Prepared = std::function<void(Result<std::vector<launch::ImageFacts>>)>;
  [[nodiscard]] virtual std::shared_ptr<void> prepare(
      const GangId& gang, std::vector<ImageRequest> images,
      std::function<void(const job::Fact&)> progress, Prepared done) {
    static_cast<void>(gang);
    static_cast<void>(images);
    static_cast<void>(progress);
    static_cast<void>(done);
    return nullptr;
  }

  /// Whether the engine requests allocations from a cluster (allocation.h). If not, the caller
  /// chooses among nodes().
  virtual bool has_cluster_queue() const { return false; }

  /// The cluster's name for messages: "Slurm".
  virtual std::string cluster_name() const { return "the cluster"; }

  /// Checks, before a job is accepted, whether a cluster of this kind could ever grant the request.
  /// Does not contact the cluster. kRefused, with advice.
  virtual Result<void> check_allocation_request(const AllocationRequest& request) const {
    static_cast<void>(request);
    return {};
  }

  using AllocationListener = std::function<void(const GangId&, const AllocationNews&)>;
  /// Sets the listener for allocations, once, before the first request. It is never called from
  /// within a call of this engine.
  virtual void set_allocation_listener(AllocationListener listener) { static_cast<void>(listener); }

  /// Requests an allocation for a gang; the listener gets the results. If an earlier server has
  /// requested one for this gang, that request is continued: a gang never has two.
  virtual void request_allocation(const GangId& gang, AllocationRequest request) {
    static_cast<void>(gang);
    static_cast<void>(request);
  }

  /// Releases the gang's allocation or request, if any. Tasks that still run are killed.
  /// Idempotent; takes effect even if this server ends or the cluster does not answer now. The
  /// listener is not called for this gang afterwards.
  virtual void release_allocation(const GangId& gang) { static_cast<void>(gang); }

  /// How tasks on these nodes reach each other.
  virtual launch::Reach reach(const std::vector<std::string>& nodes) const {
    static_cast<void>(nodes);
    return launch::Reach::kLoopback;
  }

  /// The paths of Muster's own programs in tasks: the shim (--rank) and the remote shell. Empty:
  /// the same as on the machine.
  struct ProgramsInTasks {
    std::string shim;
    std::string remote_shell;
    /// `JOINER --join TASKS PROGRAM...` moves a program that the cluster started on a node into the
    /// task that runs there; empty: not available.
    std::string joiner = {};
  };
  virtual ProgramsInTasks programs_in_tasks() const { return {}; }

  /// The path in tasks of the cluster's program that starts ranks, srun (job::LaunchBy::kSrun).
  /// Empty: not available.
  virtual std::string srun_in_tasks() const { return {}; }

  /// The version that the task's mpirun printed ("Open MPI 4.1.4"); empty: unknown or not examined.
  /// Available when the start of the task is done.
  virtual std::string mpi_of(const GangId& gang, const std::string& task) const {
    static_cast<void>(gang);
    static_cast<void>(task);
    return {};
  }

  /// The machines that are available now.
  virtual std::vector<Node> nodes() = 0;

  /// Calls `changed` when the result of nodes() changes, until the returned handle is dropped.
  [[nodiscard]] virtual std::shared_ptr<void> watch_nodes(std::function<void()> changed) = 0;

  /// Sets the listener for reports, once, before the first start.
  virtual void listen(Listener listener) = 0;

  /// The path of the generated folder in the task; plans must be made with this path.
  virtual std::string generated_folder(const GangId& gang, std::string_view task,
                                       job::Sandbox sandbox) const = 0;

  /// Starts all of `tasks` or none: after an error all of their traces are removed. `done` is
  /// called once, later. The content of the gang's volumes may have to be copied first; a stop() of
  /// one of `tasks` meanwhile makes the start fail (kUnavailable). kConflict: a task of this gang
  /// was started before, or another process has a port that the task serves.
  ///
  /// More tasks may be added to a running gang, any number of times. They share its volumes and
  /// network. If their start fails, the running tasks continue. REQUIRES: the same reach.
  virtual void start(const GangId& gang, std::vector<launch::TaskPlan> tasks, Done done) = 0;

  /// Changes files of running tasks. Each file is replaced atomically, at all its paths. Files or
  /// links that the task has put in its place are replaced, never followed. Host names are added to
  /// the task's own /etc/hosts if the network does not resolve them. `done` is called once, later,
  /// when all files were tried; ended tasks are not errors. kConflict: the start of a task is not
  /// done, or a folder of the task is in the way.
  virtual void change_files(const GangId& gang, std::vector<launch::FileChange> changes,
                            Done done) = 0;

  /// Stops these tasks; a TaskEnded follows for each running task. Idempotent; ended or unknown
  /// tasks are not errors.
  virtual void stop(const GangId& gang, const std::vector<std::string>& tasks, StopMode mode) = 0;

  /// Checks, before the first adoption, that the engine could list what an earlier server has left. An
  /// error keeps the server from starting: it would end running tasks whose traces it has not found.
  virtual Result<void> check_found_tasks() { return {}; }

  /// Adopts a task that an earlier server started.
  virtual AdoptionResult adopt(const GangId& gang, const std::string& task) = 0;

  /// The running tasks of a job that were not adopted, because the job's record cannot be read, or
  /// the job has ended by its record.
  /// nullopt: this engine cannot list them.
  virtual std::optional<std::vector<RunningTask>> running_tasks(const std::string& job_id) const {
    static_cast<void>(job_id);
    return std::nullopt;
  }

  /// The ids of jobs for which `is_known` returns false and of which a task may run: no store has a
  /// record of them, as after the restore of an older backup. Empty as well if this engine cannot
  /// list them.
  virtual std::vector<std::string> unknown_jobs(
      const std::function<bool(const std::string& job_id)>& is_known) const {
    static_cast<void>(is_known);
    return {};
  }

  /// The ids of jobs of which a task may run on this machine, whatever the store has of them; those
  /// of other servers may be among them. running_tasks() has the tasks. Empty as well if this engine
  /// cannot list them.
  virtual std::vector<std::string> jobs_with_tasks() const { return {}; }

  /// Removes data that must not outlive the gang: keys, environment, temporary files. Logs stay.
  virtual void scrub(const GangId& gang) = 0;

  /// Removes all data of all attempts, including logs and artifacts; the project's storage stays.
  /// The data is invisible at once. Files that cannot be deleted at first are logged and tried
  /// again, also by the next server. REQUIRES: no task of the job runs.
  virtual Result<void> remove(const std::string& job_id) = 0;

  /// The approximate disk space of that data. `done` is called later, never after the engine is
  /// destroyed.
  using Measured = std::function<void(int64_t bytes)>;
  virtual void measure(const std::string& job_id, Measured done) = 0;

  /// Reads a task's log from its beginning. kNotFound: the task was never started.
  virtual Result<std::unique_ptr<LogCursor>> open_log(const GangId& gang,
                                                      const std::string& task) = 0;

  /// Calls `grown` when the log may have grown, until the returned handle is dropped.
  [[nodiscard]] virtual std::shared_ptr<void> watch_log(const GangId& gang, const std::string& task,
                                                        std::function<void()> grown) = 0;

  /// Runs a program in a running task, with the task's host name, processes, /generated and
  /// environment. kConflict: the task is not running; kNotFound: the program does not exist. Errors
  /// that only the task's machine can detect are reported by Exec::when_begun().
  virtual Result<std::unique_ptr<Exec>> exec(const GangId& gang, const std::string& task,
                                             const ExecPlan& plan, ExecHandlers handlers) = 0;

  /// The input and output of the task's own program from now on. Any number of callers may be
  /// attached. Dropping the Exec does not affect the program. Input is discarded if the program
  /// does not read; resize() has no effect without a terminal. kConflict: the task is not running.
  virtual Result<std::unique_ptr<Exec>> attach(const GangId& gang, const std::string& task,
                                               ExecHandlers handlers) = 0;

  /// Reads a task's metrics; empty for a task that was never started.
  virtual MetricReader open_metrics(const GangId& gang, const std::string& task) = 0;

  /// The folder of this machine with the job's artifacts, if it has any.
  virtual std::optional<std::filesystem::path> artifacts_folder(
      const std::string& job_id) const = 0;

  /// The rank census of the gang so far.
  virtual std::vector<RankPlace> ranks(const GangId& gang,
                                       const std::vector<std::string>& tasks) const = 0;
};

}  // namespace muster::engine
