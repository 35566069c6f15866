// What an engine needs to know to start one task: no more, and nothing of jobs or queues.
//
// Plain values. Paths in them are as the task sees them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/job.h"
#include "job/mpi_version.h"
#include "launch/choose_launch.h"

namespace muster::launch {

using Variables = std::map<std::string, std::string>;

/// The socket in the generated folder to which programs report metrics
/// (engine/shim/task_metrics.h).
inline constexpr const char* kReportSocket = "metrics";

/// A file of /generated. The engine writes it before the task starts and removes it, at the latest,
/// when the job has ended; secret ones never outlive the gang.
struct PlannedFile {
  std::string path;  ///< relative to the generated folder: ssh/config
  std::string content;
  mode_t mode = 0600;
  bool secret = false;

  bool operator==(const PlannedFile&) const = default;
};

/// How the tasks of a gang reach each other.
enum class Reach {
  kLoopback,  ///< all on one machine: each has an address of its own in 127.0.0.0/8
  kNames,     ///< on a network of the job's own, which knows each by its host name
  kHosts,     ///< by the addresses of their nodes: each has ports of its own
};

/// Where the task answers its launcher's remote shell. The port is bound before the task starts;
/// each connection gets a server of its own.
struct SshService {
  int port = 0;
  std::vector<std::string> command;  ///< sshd or muster-rsh, in inetd mode
  std::string bind;                  ///< the address to bind; empty: TaskPlan::address

  bool operator==(const SshService&) const = default;
};

/// A port that the program of a task binds by itself. Nobody holds it for the program between its
/// choice and then; somebody else may have taken it meanwhile.
struct ServedPort {
  int port = 0;
  std::string address;  ///< empty: every address that the task has

  bool operator==(const ServedPort&) const = default;
};

/// What depends on which MPI the task's mpirun belongs to. The engine has `mpirun --version` run in
/// the task before its program starts, and does what stands under the answer.
struct MpiChoice {
  struct Variant {
    std::map<std::string, std::string> environment;  ///< on top of TaskPlan::environment
    /// Files of /generated that take the content of another: hostfile <- hostfile.intel.
    std::map<std::string, std::string> files;

    bool operator==(const Variant&) const = default;
  };
  /// Whose --version is asked; looked up in the PATH of the task.
  std::string program = "mpirun";
  std::map<job::MpiKind, Variant> variants;

  bool operator==(const MpiChoice&) const = default;
};

struct TaskPlan {
  std::string task;
  job::Role role = job::Role::kSingle;
  std::string node;  ///< where it was placed: one of the engine's
  std::string hostname;
  Reach reach = Reach::kLoopback;
  std::string address;  ///< where others reach it: 127.x.y.z, its host name, or its node's address
  std::vector<std::string> argv;  ///< empty: the task only answers ssh
  std::map<std::string, std::string> environment;
  std::string folder;
  std::string image;             ///< for an engine that runs images: the id of one
  Account account;               ///< who it runs as in that image
  job::ContainerSpec container;  ///< for the same
  job::Resources resources;  ///< of the node: what it may use, where the engine can hold it to that
  std::vector<int> devices;  ///< the numbers of its GPUs on the node
  std::string project;       ///< whose kStorage volumes are meant
  std::string owner;         ///< the user who submitted the job
  std::string unix_account;  ///< of the owner on the node, for an engine that uses it; empty: none
  std::vector<job::Volume> volumes;  ///< what it finds where; the same for all of a gang
  job::Sandbox sandbox = job::Sandbox::kBubblewrap;
  std::chrono::milliseconds grace{0};
  std::vector<PlannedFile> files;
  std::vector<std::string> folders;  ///< empty folders of /generated, 0700
  std::optional<SshService> ssh;
  std::vector<ServedPort> serves;  ///< what its program will bind; others are told to call there
  /// Files of /generated that are found at another path, too: hostfile -> /etc/mpi/hostfile. Only
  /// in a sandbox.
  std::map<std::string, std::string> also_at;
  std::optional<MpiChoice> mpi;  ///< of a launcher
  /// Ranks may be started in it. Open MPI has each sign in (its fork agent); for others the engine
  /// looks among the task's processes.
  bool takes_ranks = false;
  bool input = false;     ///< its program reads what those who are attached write; else nothing
  bool terminal = false;  ///< it has a terminal
  /// Those it was given, as CUDA_VISIBLE_DEVICES names them.
  std::vector<std::string> gpus;
  bool own_rank_output = false;  ///< ranks in it print into its own log, not through mpirun
  bool tags_ranks = false;       ///< lines of its output may say which rank printed them
  bool prepends_rank = false;    ///< they begin with "[3] " where a rank printed them
  std::vector<std::pair<std::string, std::string>> hosts;  ///< name -> address, for /etc/hosts

  bool operator==(const TaskPlan&) const = default;
};

/// What changes in a task that runs when others join or leave its gang.
struct FileChange {
  std::string task;
  /// Each comes in the place of the one of its path. Where its mpirun had one take the content of
  /// another (MpiChoice), it does again.
  std::vector<PlannedFile> files;
  /// What its /etc/hosts is to know from now on: of all who take part. Empty: what it knows.
  std::vector<std::pair<std::string, std::string>> hosts;

  bool operator==(const FileChange&) const = default;
};

/// A gang, in the order it starts: every task of `first` is up and answers before `then` starts.
struct GangPlan {
  std::vector<TaskPlan> first;
  std::vector<TaskPlan> then;
};

}  // namespace muster::launch
