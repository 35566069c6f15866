// Where tasks run. An engine starts the tasks it is given, all or none, says what happens to each,
// and keeps their logs; it knows nothing of queues, retries or what a job means.
//
// Threads: every call and every report is on the EventLoop's thread. Every engine passes the
// conformance suite (engine/conformance_test.cc).
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

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/log_frame.h"
#include "engine/metric_log.h"
#include "engine/room.h"
#include "job/exit_status.h"
#include "launch/choose_launch.h"
#include "launch/task_plan.h"

namespace muster::engine {

using base::Result;

/// One attempt of one job. A new attempt never meets what is left of the one before.
struct Gang {
  std::string job_id;
  int attempt = 0;

  auto operator<=>(const Gang&) const = default;
};

/// A machine that takes tasks. Its GPUs are numbered from 0, and all of one model.
struct Node {
  std::string name;
  std::string pool = "default";
  int task_slots = 0;
  int gpus = 0;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;  ///< of each GPU; 0: unknown
  /// What CUDA_VISIBLE_DEVICES calls each GPU there; empty: its number.
  std::vector<std::string> gpu_names;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  std::string address;  ///< where tasks on other nodes reach those on this one; empty: nowhere
  std::map<std::string, std::string> topology;  ///< level -> domain
  std::map<std::string, std::string> labels;

  bool operator==(const Node&) const = default;
};

/// The task answers: its sshd greeted on its port. A task without one answers once it is started.
struct TaskAnswered {};

/// The task is over, and nothing of it runs any more.
struct TaskEnded {
  job::ExitStatus status;
  base::Time time;
};

/// ranks() has another answer for this task.
struct RanksChanged {};

using TaskNews = std::variant<TaskAnswered, TaskEnded, RanksChanged>;

struct TaskReport {
  Gang gang;
  std::string task;
  TaskNews what;
};

/// An image that a task is to run in.
struct ImageWish {
  std::string task;
  std::string node;
  std::string image;
  std::string user;  ///< as JobSpec::user has it; empty: whom the image says
  job::PullPolicy pull = job::PullPolicy::kIfMissing;
  std::string registry;  ///< where to log in; empty: the one that the image names
  std::string username;  ///< empty: nobody logs in
  std::string password;
};

/// Where the rank census found a rank of an MPI program.
struct RankPlace {
  int rank = 0;  ///< or kReached, kHangs (engine/rank_files.h)
  int world_size = 0;
  std::string task;
};

enum class StopMode {
  kGraceful,  ///< SIGTERM, then SIGKILL when the task's grace has passed
  kNow,       ///< SIGKILL
};

/// What a restarted server finds of a task.
enum class Found {
  kNothing,  ///< it was never started, or its supervisor left no trace
  kRunning,  ///< reports follow as if this engine had started it
  kEnded,    ///< a TaskEnded report follows
};

/// What of Muster's own is run in a task, in the place of a program that the task may lack.
enum class Helper {
  kNone,     ///< argv is a program of the task
  kPack,     ///< argv: PATH. Its output is a tar of that file or folder
  kUnpack,   ///< argv: PATH. Its input is a tar, unpacked to there
  kConnect,  ///< argv: PORT. Its input and output are a connection to that port of the task
};

/// A task that runs, as the engine itself knows it.
struct RunningTask {
  Gang gang;
  std::string task;
  std::string node;
  std::vector<int> devices;  ///< the numbers of its GPUs on the node
  int gpu_share_milli = 0;   ///< of each of them; 0 without devices
};

/// A program that is run in a task that runs, beside what the task itself runs.
struct ExecPlan {
  Helper helper = Helper::kNone;
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  ///< on top of the task's own
  bool terminal = false;                           ///< it gets one, of this size
  int rows = 24;
  int columns = 80;
};

struct ExecHandlers {
  std::function<void(std::string_view bytes, bool is_error)> on_output;
  std::function<void(job::ExitStatus)> on_exit;  ///< once, after all output
  /// No more than Exec::kHigh bytes of input wait any more: go on.
  std::function<void()> on_drain = {};
  /// The program has closed that output, and may go on all the same. Not told of a terminal, nor
  /// for certain once the program has ended.
  std::function<void(bool is_error)> on_output_end = {};
};

/// The near end of such a program. Dropping it ends the program (SIGHUP, then SIGKILL).
class Exec {
 public:
  static constexpr size_t kHigh = 256 << 10;
  using Begun = std::function<void(Result<void>)>;

  virtual ~Exec() = default;
  /// Calls once, now or later and before all else: it runs, or why it does not, as the call that
  /// gave this would have said had it known; then nothing is called any more. Whoever does not ask
  /// hears of the latter as of an end, with code 127.
  virtual void when_begun(Begun told) { told({}); }
  /// Whoever writes much waits for on_drain where waiting() passes kHigh.
  virtual void write(std::string_view bytes) = 0;
  /// Input that the program has not taken yet.
  virtual size_t waiting() const { return 0; }
  virtual void close_input() = 0;
  virtual void resize(int rows, int columns) = 0;
  /// Holds its output back, for a reader that cannot keep up.
  virtual void pause(bool paused) = 0;
};

class Engine {
 public:
  using Done = std::function<void(Result<void>)>;
  using Listener = std::function<void(const TaskReport&)>;

  virtual ~Engine() = default;

  /// Whether TaskPlan::image is what a task runs in. Where it is not, tasks see the machine's own
  /// files.
  virtual bool runs_images() const { return false; }

  /// Has the images brought to their nodes and looked into. `progress` is told, now and then, what
  /// is being fetched. `done` is called once, later, with the
  /// facts of each wish, in their order; never after the interest was dropped, which ends what is
  /// under way. Only of an engine that runs images.
  ///
  /// Errors: kNotFound (no such image), kRefused (the registry, or an image for another processor),
  /// kUnavailable (the node's engine).
  using Prepared = std::function<void(Result<std::vector<launch::ImageFacts>>)>;
  [[nodiscard]] virtual std::shared_ptr<void> prepare(
      const Gang& gang, std::vector<ImageWish> images,
      std::function<void(const job::FetchesImage&)> progress, Prepared done);

  /// Whether it asks a cluster for room (room.h). Where it does not, tasks are started on whichever
  /// of nodes() the caller has chosen.
  virtual bool asks_for_room() const { return false; }

  /// Whom it asks, for sentences: "Slurm".
  virtual std::string cluster_name() const { return "the cluster"; }

  /// What of a wish no cluster of this kind could ever give: told before a job is taken, without
  /// asking anybody. kRefused, with what to ask for in its place.
  virtual Result<void> check_room(const RoomWish& wish) const {
    static_cast<void>(wish);
    return {};
  }

  using RoomListener = std::function<void(const Gang&, const RoomNews&)>;
  /// Who hears of rooms; set once, before any is asked for. Never called within a call of this
  /// engine.
  virtual void hear_of_rooms(RoomListener listener) { static_cast<void>(listener); }

  /// Asks for room for a gang, and tells what comes of it. Of a gang that an earlier server asked
  /// for, that request is taken up: no gang ever has two.
  virtual void ask_for_room(const Gang& gang, RoomWish wish) {
    static_cast<void>(gang);
    static_cast<void>(wish);
  }

  /// The gang needs none any more, or never did. What of it still runs is ended at once.
  /// Idempotent; holds though this server ends or the cluster does not answer right now. Nothing
  /// more is told of the gang's room.
  virtual void give_back_room(const Gang& gang) { static_cast<void>(gang); }

  /// How tasks on these nodes would reach each other.
  virtual launch::Reach reach(const std::vector<std::string>& nodes) const {
    static_cast<void>(nodes);
    return launch::Reach::kLoopback;
  }

  /// Muster's own programs as tasks see them: the shim (--rank) and the remote shell. Empty: tasks
  /// see the machine's files.
  struct ProgramsInTasks {
    std::string shim;
    std::string remote_shell;
    /// `JOINER --join TASKS PROGRAM...` runs a program that the cluster has started on a node
    /// within the task that runs there; empty: there is none.
    std::string joiner = {};
  };
  virtual ProgramsInTasks programs_in_tasks() const { return {}; }

  /// The cluster's own program that starts ranks (job::LaunchBy::kSrun), as tasks see it: a path of
  /// srun. Empty: there is none.
  virtual std::string srun_in_tasks() const { return {}; }

  /// What the task's mpirun said it is ("Open MPI 4.1.4"); empty: it was not asked, or none knows
  /// it. There from the time on that the start of the task is done.
  virtual std::string mpi_of(const Gang& gang, const std::string& task) const {
    static_cast<void>(gang);
    static_cast<void>(task);
    return {};
  }

  /// The machines there are now.
  virtual std::vector<Node> nodes() = 0;

  /// Calls when nodes() has another answer, as long as the interest is kept.
  [[nodiscard]] virtual std::shared_ptr<void> watch_nodes(std::function<void()> changed) = 0;

  /// Who hears the reports; set once, before anything is started.
  virtual void listen(Listener listener) = 0;

  /// The generated folder as the task will see it; what plans must be made with.
  virtual std::string generated_folder(const Gang& gang, std::string_view task,
                                       job::Sandbox sandbox) const = 0;

  /// Starts all of `tasks` or none: after an error whatever of them had started is gone, as if it
  /// had never been asked for. `done` is called once, later; what the gang's volumes hold may have
  /// to be brought first, and a stop() of one of `tasks` during that is an error of the start
  /// (kUnavailable). kConflict: a task of this gang that was ever started before, or a port that it
  /// serves and another process has.
  ///
  /// A gang that runs may get more tasks, as often as one likes: they share its volumes and its
  /// network, and however their start ends, those that run go on. REQUIRES: the same reach.
  virtual void start(const Gang& gang, std::vector<launch::TaskPlan> tasks, Done done) = 0;

  /// Changes files of tasks that run, each at once: whoever reads has the old one or the new one,
  /// at every path that it is found at. What the task has put in the place of one is replaced and
  /// never followed. Names are added where the task has an /etc/hosts of its own to be told by, and
  /// the network does not know them by itself. `done` is called once, later, when all were tried;
  /// tasks that have ended are no error. kConflict: a task's start is not done yet, or something of
  /// its own stands in the way.
  virtual void change_files(const Gang& gang, std::vector<launch::FileChange> changes,
                            Done done) = 0;

  /// Ends these tasks; a TaskEnded follows for each that runs. Idempotent; ended or unknown tasks
  /// are no error.
  virtual void stop(const Gang& gang, const std::vector<std::string>& tasks, StopMode mode) = 0;

  /// Takes up a task that an earlier server started.
  virtual Found adopt(const Gang& gang, const std::string& task) = 0;

  /// The tasks of a job that run and were not taken up, told without the job's record, which cannot
  /// be read. Nothing: this engine cannot tell.
  virtual std::optional<std::vector<RunningTask>> running_tasks(const std::string& job_id) const {
    static_cast<void>(job_id);
    return std::nullopt;
  }

  /// Removes what must not outlive the gang: keys, environment, temporary files. Logs stay.
  virtual void scrub(const Gang& gang) = 0;

  /// Removes everything of every attempt, logs and artifacts included; the storage of its project
  /// stays. Gone at once for whoever looks; what cannot be removed from the disk right then is said
  /// in the server's log and tried again, by the next server, too. REQUIRES: no task of it runs.
  virtual Result<void> remove(const std::string& job_id) = 0;

  /// How much room of the disk all of that takes, about; `done` is called later, and never when the
  /// engine is gone.
  using Measured = std::function<void(int64_t bytes)>;
  virtual void measure(const std::string& job_id, Measured done) = 0;

  /// Reads a task's log from its beginning. kNotFound where the task never started.
  virtual Result<std::unique_ptr<LogCursor>> open_log(const Gang& gang,
                                                      const std::string& task) = 0;

  /// Calls when the log may have grown, as long as the interest is kept.
  [[nodiscard]] virtual std::shared_ptr<void> watch_log(const Gang& gang, const std::string& task,
                                                        std::function<void()> grown) = 0;

  /// Runs a program in a running task: with its host name, its processes, its /generated and its
  /// environment. kConflict: the task does not run; kNotFound: there is no such program. What is
  /// known elsewhere only is told by Exec::when_begun().
  virtual Result<std::unique_ptr<Exec>> exec(const Gang& gang, const std::string& task,
                                             const ExecPlan& plan, ExecHandlers handlers) = 0;

  /// The input and output of the task's own program, from now on; any number may be attached at
  /// once. Dropping it leaves the program as it is. Where the program has no terminal, or reads
  /// nothing, what is written or resized is lost. kConflict: the task does not run.
  virtual Result<std::unique_ptr<Exec>> attach(const Gang& gang, const std::string& task,
                                               ExecHandlers handlers) = 0;

  /// What was and is measured of a task. Where it never started there is nothing to read.
  virtual MetricReader open_metrics(const Gang& gang, const std::string& task) = 0;

  /// The folder of this machine in which the job's artifacts lie, where it has any.
  virtual std::optional<std::filesystem::path> artifacts_folder(
      const std::string& job_id) const = 0;

  /// The rank census of the gang, as far as it is known now.
  virtual std::vector<RankPlace> ranks(const Gang& gang,
                                       const std::vector<std::string>& tasks) const = 0;
};

}  // namespace muster::engine
