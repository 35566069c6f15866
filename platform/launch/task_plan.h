// What an engine needs to start one task, without any knowledge of jobs or queues.
//
// Plain values. Paths are as the task sees them.
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

/// A file of /generated. The engine writes it before the task starts and removes it at the latest
/// when the job has ended; secret files are removed with the gang.
struct PlannedFile {
  std::string path;  ///< relative to the generated folder: ssh/config
  std::string content;
  mode_t mode = 0600;
  bool secret = false;

  bool operator==(const PlannedFile&) const = default;
};

/// How the tasks of a gang reach each other.
enum class Reach {
  kLoopback,  ///< all on one machine: each has its own address in 127.0.0.0/8
  kNames,     ///< on a network of the job's own, which resolves host names
  kHosts,     ///< by the addresses of their nodes: each has its own ports
};

/// The server for the launcher's remote shell. The port is bound before the task starts; each
/// connection is served by a process of its own.
struct SshService {
  int port = 0;
  std::vector<std::string> command;  ///< sshd or muster-rsh, in inetd mode
  std::string bind;                  ///< the address to bind; empty: TaskPlan::address

  bool operator==(const SshService&) const = default;
};

/// A port that the program of a task binds by itself. It is not reserved between its choice and the
/// program's start, so another program may take it first.
struct ServedPort {
  int port = 0;
  std::string address;  ///< empty: every address of the task

  bool operator==(const ServedPort&) const = default;
};

/// Settings that depend on the MPI of the task's mpirun. The engine runs `mpirun --version` in the
/// task before its program starts, and applies the settings of that MPI.
struct MpiChoice {
  struct Variant {
    std::map<std::string, std::string> environment;  ///< added to TaskPlan::environment
    /// Files of /generated that get the content of another file: hostfile <- hostfile.intel.
    std::map<std::string, std::string> files;

    bool operator==(const Variant&) const = default;
  };
  /// The program that is asked for its version; searched in the PATH of the task.
  std::string program = "mpirun";
  std::map<job::MpiKind, Variant> variants;

  bool operator==(const MpiChoice&) const = default;
};

struct TaskPlan {
  std::string task;
  job::TaskRole role = job::TaskRole::kSingle;
  std::string node;  ///< the node it was placed on
  std::string hostname;
  Reach reach = Reach::kLoopback;
  std::string address;  ///< its address for others: 127.x.y.z, its host name, or its node's address
  std::vector<std::string> argv;  ///< empty: the task only answers ssh
  std::map<std::string, std::string> environment;
  std::string folder;
  std::string image;                 ///< for an engine that runs images: the id of an image
  Account account;                   ///< its account in that image
  job::ContainerSpec container;      ///< for an engine that runs images
  job::Resources resources;          ///< on the node; enforced if the engine can enforce them
  std::vector<int> devices;          ///< the numbers of its GPUs on the node
  std::string project;               ///< the project of the kStorage volumes
  std::string owner;                 ///< the user who submitted the job
  std::string unix_account;          ///< of the owner on the node, if the engine uses it; or empty
  std::vector<job::Volume> volumes;  ///< the same for all tasks of a gang
  job::Sandbox sandbox = job::Sandbox::kBubblewrap;
  std::chrono::milliseconds grace{0};
  std::vector<PlannedFile> files;
  std::vector<std::string> folders;  ///< empty folders of /generated, 0700
  std::optional<SshService> ssh;
  /// The ports that its program will bind, known to the other tasks.
  std::vector<ServedPort> serves;
  /// Files of /generated that also appear at another path: hostfile -> /etc/mpi/hostfile. Only in a
  /// sandbox.
  std::map<std::string, std::string> also_at;
  std::optional<MpiChoice> mpi;  ///< for a launcher
  /// Ranks may be started in it. Open MPI reports each rank (by its fork agent); for other MPIs the
  /// engine searches the task's processes.
  bool takes_ranks = false;
  /// Its program reads the input of attached clients; otherwise its input is empty.
  bool input = false;
  bool terminal = false;  ///< it has a terminal
  /// Its GPUs, as named in CUDA_VISIBLE_DEVICES.
  std::vector<std::string> gpus;
  bool own_rank_output = false;  ///< its ranks print into its own log, not through mpirun
  bool tags_ranks = false;       ///< lines of its output may name the rank that printed them
  bool prepends_rank = false;    ///< such lines begin with "[3] "
  std::vector<std::pair<std::string, std::string>> hosts;  ///< name -> address, for /etc/hosts

  bool operator==(const TaskPlan&) const = default;
};

/// The changes in a running task when other tasks join or leave its gang.
struct FileChange {
  std::string task;
  /// Each file replaces the file of the same path. If mpirun's version gave a file the content of
  /// another (MpiChoice), this is repeated.
  std::vector<PlannedFile> files;
  /// The new entries of its /etc/hosts: all members. Empty: no change.
  std::vector<std::pair<std::string, std::string>> hosts;

  bool operator==(const FileChange&) const = default;
};

/// The tasks of a gang in starting order: `then` starts after every task of `first` is up and
/// answers.
struct GangPlan {
  std::vector<TaskPlan> first;
  std::vector<TaskPlan> then;
};

}  // namespace muster::launch
