// The orders for a shim, and the records that it leaves. All of them are files of the task's own
// folder, where a restarted server finds them:
//
//   lock       locked (flock) from before the shim starts until it has ended
//   plan       ShimPlan, CBOR, 0600; removed when the task has ended (it contains the environment)
//   running    RunningRecord, JSON; written once programs can be started in the task
//   exit       ExitRecord, JSON padded with blanks: its space on disk is reserved before the task
//              starts, so that the exit code can be written even when the disk is full
//   log        log_frame.h
//   log.start  offset of the log's oldest byte; absent until the front of the log is cut
//   metrics    metric_log.h
//   attach     socket: the input and output of the task's program (attachments.h); removed when the
//              task has ended
//   mpi        the MPI of the task's mpirun ("Open MPI 4.1.4"); absent if unknown; written before
//              "running"
//   refused    container tasks only: why the task could not be started, "CODE\nWHAT"
//   answered   container tasks only, empty: the task's remote shell has greeted
//   generated/ the folder that the task sees as /generated
//   hosts, passwd, shadow   the files that the task sees in /etc
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
#include "engine/shim/task_account.h"
#include "engine/shim/task_limits.h"
#include "job/exit_status.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// The orders for the inner half, which is process 1 of the sandbox and starts the programs.
struct InnerPlan {
  std::vector<std::string> argv;  ///< empty: the task only answers ssh
  std::vector<std::string> environment;
  std::string folder;
  std::vector<std::string> ssh_command;  ///< sshd in inetd mode; empty: the task answers no ssh
  std::string rank_output_folder;  ///< holds the socket that takes ranks' output; empty: no socket
  bool own_process_tree = false;   ///< the inner half is process 1: all other processes end with it
  bool input = false;              ///< the program reads from kInnerInput
  bool terminal = false;           ///< kInnerInput is the program's terminal
  std::string generated;           ///< path of the generated folder in the task
  std::optional<launch::MpiChoice> mpi;  ///< run mpirun --version before the program
  bool takes_ranks = false;              ///< find ranks that do not sign in themselves (ranks.h)
  /// A seccomp filter for all programs of the task, as the kernel reads it; empty: no filter.
  std::string filter;
  /// Whose ids the programs of the task have; nothing: those of the shim.
  std::optional<TaskAccount> account;
  TaskLimits limits;  ///< for all programs of the task, including those of `muster exec`
  /// Set once the MPI is known: file of /generated -> the file of /generated that it is a copy of.
  std::map<std::string, std::string> taken_from;
};

/// How a task is measured while it runs.
struct SamplingPlan {
  std::chrono::milliseconds first{0};     ///< from the task's start to the first sample
  std::chrono::milliseconds interval{0};  ///< between two samples; 0: no samples
  std::string nvml;                       ///< the NVML library, which measures GPUs
  std::vector<std::string> gpus;          ///< the task's GPUs, as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplingPlan&) const = default;
};

struct ShimPlan {
  std::vector<std::string> wrapper;  ///< argv of the sandbox, then argv of the inner half
  InnerPlan inner;
  /// The generated folder, as the outer half sees it; empty: "generated" in the task's folder.
  std::string generated;
  std::string address;  ///< address to bind for ssh
  int port = 0;         ///< port to bind for ssh; 0: none
  /// Ports that the program will bind; they must be free when the program starts.
  std::vector<launch::ServedPort> serves;
  std::chrono::milliseconds grace{0};
  bool tags_ranks = false;     ///< the output has tags with ranks (RankTags in ranks.h)
  bool prepends_rank = false;  ///< tags of the short form "[3] " occur, too
  uint64_t log_quota = 0;      ///< bytes that the log may have; 0: no limit
  bool is_leashed = false;     ///< the task must end with the engine's process (kShimLeash)
  SamplingPlan sampling;
  HandedFiles handed;                ///< to InnerPlan::account
  std::vector<std::string> notices;  ///< written to the log before the task starts
};

/// Identifies the shim's process. The pid alone is not enough: the kernel reuses pids.
struct RunningRecord {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  base::Time started;
};

struct ExitRecord {
  job::ExitStatus status;
  base::Time ended;
};

/// The paths of the files in a task's folder.
struct TaskFolder {
  std::filesystem::path path;
  std::filesystem::path lock() const { return path / "lock"; }
  std::filesystem::path plan() const { return path / "plan"; }
  /// Of a task in a container: the engine has put all of the task's files into the container.
  std::filesystem::path complete() const { return path / "complete"; }
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
  std::filesystem::path resolver() const { return path / "resolv.conf"; }
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
/// kNotFound: the record is still blank.
base::Result<ExitRecord> decode_exit(std::string_view json);

/// Why a task could not be started: "CODE\nWHAT", or "CODE sandbox\nWHAT" if the error's detail is
/// SandboxFailed.
std::string refusal_text(const base::Error& error);
base::Error read_refusal(std::string_view text);

/// Detail of an error: bubblewrap could not make the sandbox.
struct SandboxFailed : base::ErrorDetail {};

/// Start time of a process in clock ticks since boot; 0: there is no such process.
uint64_t start_ticks_of(pid_t pid);

// --- descriptors that a process inherits, by their numbers

// The outer half, from the engine.
inline constexpr int kShimLock = 3;          ///< the task's lock
inline constexpr int kShimStatus = 4;        ///< pipe for kShimStarted or refusal_text()
inline constexpr int kShimLeash = 5;         ///< pipe that closes when the engine's process ends
inline constexpr int kShimNetwork = 6;       ///< the network namespace of the gang
inline constexpr int kShimNetworkUser = 7;   ///< the user namespace that owns the network
inline constexpr int kShimNetworkUsers = 8;  ///< NetworkNamespace::users; absent without pasta

// The inner half, from the outer half.
inline constexpr int kInnerControl = 3;   ///< socket between the two halves
inline constexpr int kInnerPlan = 4;      ///< file with the InnerPlan
inline constexpr int kInnerListener = 5;  ///< listening socket for ssh; absent without ssh
inline constexpr int kInnerInput = 6;     ///< absent if the program has neither input nor terminal
inline constexpr int kInnerFilter = 7;    ///< for bwrap: InnerPlan::filter, if there is one

// muster-shim --exec, from the engine.
inline constexpr int kExecControl = 3;  ///< socket for the ExitRecord; its end ends the program
inline constexpr int kExecPlan = 4;     ///< file with the InnerPlan
inline constexpr int kExecTask = 5;     ///< pidfd of the task's inner half

/// A shim writes this, or refusal_text(), to kShimStatus. In a network that the engine cannot
/// reach, the shim then writes kShimAnswered once the task's port greets.
inline constexpr std::string_view kShimStarted = "started";
inline constexpr std::string_view kShimAnswered = "answered";

/// Messages between the halves of a shim, over kInnerControl (SOCK_SEQPACKET).
inline constexpr std::string_view kHello = "hello";          ///< inner half: is up
inline constexpr std::string_view kTerminate = "terminate";  ///< outer half: SIGTERM to the program
inline constexpr std::string_view kKill = "kill";            ///< outer half: kill everything now

// --- the records on disk

// Their space is reserved before the task starts, so that they can be written even when the disk is
// full. Not thread-safe.

/// The record that a task runs. Without it, no later server could reach the task.
class RunningFile {
 public:
  /// Reserves the space in a file beside `path`: only a task that runs has a file `path`.
  base::Result<void> reserve(const std::filesystem::path& path);

  /// REQUIRES: reserve() succeeded.
  base::Result<void> write(const RunningRecord& record) const;

 private:
  std::filesystem::path reserved() const { return path_.string() + ".reserved"; }

  std::filesystem::path path_;
  base::UniqueFd file_;
};

class ExitFile {
 public:
  /// Creates a blank record.
  base::Result<void> reserve(const std::filesystem::path& path);

  /// REQUIRES: reserve() succeeded. Leaves out the error text if the record is too long with it.
  void write(ExitRecord record) const;

 private:
  base::UniqueFd file_;
};

}  // namespace muster::engine
