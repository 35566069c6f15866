// Why a job failed. Facts as in job/fact.h. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "job/eviction.h"
#include "job/exit_status.h"
#include "job/fact_parts.h"

namespace muster::job {

/// A task, or a rank in it, failed.
struct TaskFailed {
  static constexpr std::string_view kKind = "task_failed";
  enum class How {
    kEnded,        ///< see `exit`
    kAborted,      ///< the rank called MPI_Abort with the code in `exit`
    kUnfinalized,  ///< the rank ended without calling MPI_Finalize
  };
  How how = How::kEnded;
  std::string task;  ///< empty: the task of the rank is unknown
  bool is_rank = false;
  std::optional<int> rank;  ///< for a rank, if its number is known
  ExitStatus exit;          ///< of the rank or of the task
  std::string image;        ///< of its container; empty: no container
  /// The meaning of its last lines; empty: `exit` explains the failure.
  std::string clue;
  bool clue_explains_code = false;  ///< the exit code does not have its usual meaning
  /// If not zero: the third worker in succession that was lost within this time of its start.
  std::chrono::milliseconds third_loss_within{0};
  /// The task that had exited with code 0 while this one still needed it; empty: no such task.
  std::string exited_before;

  bool operator==(const TaskFailed&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("how", self.how);
    visit("task", self.task);
    visit("is_rank", self.is_rank);
    visit("rank", self.rank);
    visit("exit", self.exit);
    visit("image", self.image);
    visit("clue", self.clue);
    visit("clue_explains_code", self.clue_explains_code);
    visit("third_loss_within", self.third_loss_within);
    visit("exited_before", self.exited_before);
  }
};

/// The launcher lost its daemon on a worker that still runs.
struct WorkerUnreachable {
  static constexpr std::string_view kKind = "worker_unreachable";
  std::string task;  ///< empty: only the `host` is known
  std::string host;  ///< the host as mpirun names it
  std::string launcher;
  ExitStatus exit;  ///< of the launcher

  bool operator==(const WorkerUnreachable&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("task", self.task);
    visit("host", self.host);
    visit("launcher", self.launcher);
    visit("exit", self.exit);
  }
};

struct TimeLimitReached {
  static constexpr std::string_view kKind = "time_limit_reached";
  std::chrono::milliseconds limit{0};

  bool operator==(const TimeLimitReached&) const = default;
  static void fields(auto& self, auto&& visit) { visit("limit", self.limit); }
};

/// The sshd of a task did not answer after its start.
struct NoSshAnswer {
  static constexpr std::string_view kKind = "no_ssh_answer";
  std::string task;
  std::chrono::milliseconds bound{0};
  int others = 0;  ///< the number of other tasks that did not answer

  bool operator==(const NoSshAnswer&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("task", self.task);
    visit("bound", self.bound);
    visit("others", self.others);
  }
};

/// The ranks of an MPI program run in other places, or in other numbers, than requested.
struct RanksAstray {
  static constexpr std::string_view kKind = "ranks_astray";
  enum class Fault {
    /// Each of `ranks` is in an MPI_COMM_WORLD of size 1: mpirun and the program use different MPIs
    kEachAlone,
    kOnLauncher,       ///< all `ranks` run on the launcher
    kRanOnLauncher,    ///< all ranks ran there until the end
    kCrowded,          ///< `task` runs `ranks` with `slots`, while other tasks have free slots
    kNoneInAWorker,    ///< the command started no process in a worker
    kHangsInFinalize,  ///< MPICH hangs because of a rank on `task`
    kTooFewStarted,    ///< `ranks` of `of`
  };
  Fault fault = Fault::kEachAlone;
  int ranks = 0;
  int of = 0;
  std::string task;
  int slots = 0;
  std::string mpi;         ///< "Open MPI 4.1.4"; empty: unknown
  bool is_certain = true;  ///< kOnLauncher: false if it may be the user's intention

  bool operator==(const RanksAstray&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("fault", self.fault);
    visit("ranks", self.ranks);
    visit("of", self.of);
    visit("task", self.task);
    visit("slots", self.slots);
    visit("mpi", self.mpi);
    visit("is_certain", self.is_certain);
  }
};

/// The job did not start: another job did not end in the required way.
struct DependencyUnmet {
  static constexpr std::string_view kKind = "dependency_unmet";
  AwaitedEnd awaited;
  std::optional<Phase> phase;  ///< in which the other job ended; nothing: it was deleted

  bool operator==(const DependencyUnmet&) const = default;
  static void fields(auto& self, auto&& visit) {
    visit("awaited", self.awaited);
    visit("phase", self.phase);
  }
};

/// A Remark is the message of an error: of an engine, an image, a secret.
using FailureCause =
    std::variant<Remark, TaskFailed, WorkerUnreachable, TimeLimitReached, NoSshAnswer, RanksAstray,
                 SlurmEnded, KubernetesEnded, DependencyUnmet>;

}  // namespace muster::job
