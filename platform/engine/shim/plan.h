// What a shim is told, and what it leaves for whoever comes next. All of it lies in the task's own
// folder, so a restarted server finds it:
//
//   lock       held (flock) from before the shim is spawned until it has left
//   plan       ShimPlan, CBOR, 0600; gone when the task has ended (it holds the environment)
//   running    RunningRecord, JSON: written once the task's own process is up
//   exit       ExitRecord, JSON padded with blanks: its space on disk is reserved before the task
//              starts, so that the exit code can be written even when the disk is full
//   log        log_frame.h
//   log.start  where what is left of the log begins; absent while all of it is
//   metrics    metric_log.h
//   attach     a socket: the input and output of the task's program (attachments.h); gone when the
//              task has ended
//   mpi        what its mpirun said it is ("Open MPI 4.1.4"), where one was asked and is known;
//              written before "running"
//   refused    of a task in a container: why it could not be started, "CODE\nWHAT"
//   answered   of a task in a container, empty: its remote shell's port greets
//   generated/ what the task sees as /generated
//   hosts, passwd, shadow   what it sees as those files of /etc
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/task_limits.h"
#include "job/exit_status.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// The inner half, which runs inside the sandbox as process 1 and starts the programs.
struct InnerPlan {
  std::vector<std::string> argv;  ///< empty: only answer ssh
  std::vector<std::string> environment;
  std::string folder;
  std::vector<std::string> ssh_command;  ///< sshd in inetd mode; empty: no ssh
  std::string rank_output_folder;        ///< where ranks give their output away; empty: nowhere
  bool own_process_tree = false;         ///< it is process 1: its end ends everything below
  bool input = false;                    ///< kInnerInput is what the program reads
  bool terminal = false;                 ///< kInnerInput is the program's terminal
  std::string generated;                 ///< the generated folder, as it is seen in the task
  std::optional<launch::MpiChoice> mpi;  ///< its mpirun is asked before the program starts
  bool takes_ranks = false;  ///< ranks that nobody signs in are looked for: ranks.h
  /// A seccomp filter for all programs of the task, as the kernel reads it; empty: no filter.
  std::string filter;
  TaskLimits limits;  ///< for all programs of the task, those of exec among them
  /// Once its mpirun is known: files of /generated that have the content of another.
  std::map<std::string, std::string> taken_from;
};

/// How a task is measured while it runs.
struct SamplingPlan {
  std::chrono::milliseconds first{0};     ///< after it has started
  std::chrono::milliseconds interval{0};  ///< between two samples; 0: it is not measured
  std::string nvml;                       ///< the library that tells of GPUs
  std::vector<std::string> gpus;          ///< its own, as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplingPlan&) const = default;
};

struct ShimPlan {
  std::vector<std::string> wrapper;  ///< the sandbox's argv, the inner half's argv behind it
  InnerPlan inner;
  /// The generated folder, as the outer half sees it; empty: the one in the task's folder.
  std::string generated;
  std::string address;  ///< where ssh is answered: what is bound
  int port = 0;         ///< 0: nowhere
  /// What its program will bind; nobody else may have it when the program starts.
  std::vector<launch::ServedPort> serves;
  std::chrono::milliseconds grace{0};
  bool tags_ranks = false;     ///< ranks.h
  bool prepends_rank = false;  ///< and lines begin with the rank alone
  uint64_t log_quota = 0;      ///< bytes that the log may have; 0: any number
  bool is_leashed = false;     ///< the task ends with the engine's process: kShimLeash
  SamplingPlan sampling;
};

/// Who the shim is; a pid alone could by now belong to a stranger.
struct RunningRecord {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  base::Time started;
};

struct ExitRecord {
  job::ExitStatus status;
  base::Time ended;
};

/// The names in a task's folder.
struct TaskFolder {
  std::filesystem::path path;
  std::filesystem::path lock() const { return path / "lock"; }
  std::filesystem::path plan() const { return path / "plan"; }
  std::filesystem::path running() const { return path / "running"; }
  std::filesystem::path exit() const { return path / "exit"; }
  std::filesystem::path log() const { return path / "log"; }
  std::filesystem::path log_start() const { return path / "log.start"; }
  std::filesystem::path metrics() const { return path / "metrics"; }
  std::filesystem::path attach() const { return path / "attach"; }
  std::filesystem::path mpi() const { return path / "mpi"; }
  std::filesystem::path refused() const { return path / "refused"; }
  std::filesystem::path answered() const { return path / "answered"; }
  std::filesystem::path hosts() const { return path / "hosts"; }
  std::filesystem::path passwd() const { return path / "passwd"; }
  std::filesystem::path shadow() const { return path / "shadow"; }
  std::filesystem::path generated() const { return path / "generated"; }
};

std::string encode(const ShimPlan& plan);
base::Result<ShimPlan> decode_shim_plan(std::string_view json);

std::string encode(const InnerPlan& plan);
base::Result<InnerPlan> decode_inner_plan(std::string_view json);

std::string encode(const RunningRecord& record);
base::Result<RunningRecord> decode_running(std::string_view json);

std::string encode(const ExitRecord& record);
/// kNotFound for a record that is still blank.
base::Result<ExitRecord> decode_exit(std::string_view json);

/// Why a task was not started: "CODE\nWHAT", or "CODE sandbox\nWHAT" where SandboxFailed is its
/// detail.
std::string refusal_text(const base::Error& error);
base::Error read_refusal(std::string_view text);

/// Of a refusal: bubblewrap could not make the sandbox.
struct SandboxFailed : base::ErrorDetail {};

/// Start time of a process in clock ticks since boot; 0 where there is no such process.
uint64_t start_ticks_of(pid_t pid);

// Descriptors that are handed down.
inline constexpr int kShimLock = 3;         ///< engine -> shim: the lock's descriptor
inline constexpr int kShimStatus = 4;       ///< engine -> shim: where to say "started", or why not
inline constexpr int kShimLeash = 5;        ///< engine -> shim: closes with the engine's process
inline constexpr int kShimNetwork = 6;      ///< engine -> shim: the network of the gang
inline constexpr int kShimNetworkUser = 7;  ///< engine -> shim: the user namespace that owns it
inline constexpr int kInnerControl = 3;     ///< shim -> inner: the socket they talk through
inline constexpr int kInnerPlan = 4;        ///< shim -> inner: a file with InnerPlan
inline constexpr int kInnerListener =
    5;                                  ///< shim -> inner: the listening socket; absent without ssh
inline constexpr int kInnerInput = 6;   ///< shim -> inner: absent without input and terminal
inline constexpr int kInnerFilter = 7;  ///< shim -> bwrap: InnerPlan::filter, if there is one

inline constexpr int kExecControl =
    3;                               ///< engine -> exec: ExitRecord comes by it; its end ends all
inline constexpr int kExecPlan = 4;  ///< engine -> exec: a file with InnerPlan
inline constexpr int kExecTask = 5;  ///< engine -> exec: a pidfd of the task's inner half

/// What a shim writes to kShimStatus: this, or refusal_text(). Behind it, in a network that the
/// engine is not in, kShimAnswered once the task's port greets.
inline constexpr std::string_view kShimStarted = "started";
inline constexpr std::string_view kShimAnswered = "answered";

/// What shim and inner say to each other: a line each, over a SOCK_SEQPACKET pair.
inline constexpr std::string_view kHello = "hello";          ///< inner: I am up
inline constexpr std::string_view kTerminate = "terminate";  ///< shim: SIGTERM to the program
inline constexpr std::string_view kKill = "kill";            ///< shim: end everything now

/// The exit record on disk. Its space is taken before the task starts, so that a full disk cannot
/// lose how the task ended. Not thread-safe.
class ExitFile {
 public:
  /// Makes it, blank.
  base::Result<void> reserve(const std::filesystem::path& path);

  /// REQUIRES: reserve() went well. Words that find no room in it are left out.
  void write(ExitRecord record) const;

 private:
  base::UniqueFd file_;
};

}  // namespace muster::engine
