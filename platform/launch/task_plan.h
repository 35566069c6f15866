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

namespace muster::launch {

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

/// Where the task answers ssh. The port is bound on the task's own loopback address before the task
/// starts; each connection gets an sshd of its own.
struct SshService {
  int port = 0;
  std::vector<std::string> command;  ///< sshd in inetd mode

  bool operator==(const SshService&) const = default;
};

struct TaskPlan {
  std::string task;
  job::Role role = job::Role::kSingle;
  std::string node;  ///< where it was placed: one of the engine's
  std::string hostname;
  std::string address;            ///< 127.x.y.z: the task's own
  std::vector<std::string> argv;  ///< empty: the task only answers ssh
  std::map<std::string, std::string> environment;
  std::string folder;
  std::string image;                 ///< for an engine that runs images
  std::string project;               ///< whose kStorage volumes are meant
  std::vector<job::Volume> volumes;  ///< what it finds where; the same for all of a gang
  job::Sandbox sandbox = job::Sandbox::kBubblewrap;
  std::chrono::milliseconds grace{0};
  std::vector<PlannedFile> files;
  std::vector<std::string> folders;  ///< empty folders of /generated, 0700
  std::optional<SshService> ssh;
  /// Files of /generated that are found at another path, too: hostfile -> /etc/mpi/hostfile. Only
  /// in a sandbox.
  std::map<std::string, std::string> also_at;
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

/// A gang, in the order it starts: every task of `first` is up and answers before `then` starts.
struct GangPlan {
  std::vector<TaskPlan> first;
  std::vector<TaskPlan> then;
};

}  // namespace muster::launch
