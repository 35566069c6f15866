// A cluster as seen by the parts that handle its muster-nodes (lent_tasks.h): the options of tasks,
// and the questions that each engine answers differently.
//
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/lent/gang_table.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"
#include "engine/shim/task_limits.h"

namespace muster::engine::lent {

struct LentOptions {
  std::filesystem::path folder;   ///< of jobs, on this machine
  std::string programs_on_nodes;  ///< the folder of muster-shim and the other programs
  std::string folder_on_nodes;    ///< of jobs, on a node that does not share the server's
  node::Sharing sharing = node::Sharing::kNo;
  /// Each task has a folder of its own, also beside another task of its gang on one node: as in pods.
  bool has_own_folders = false;
  /// All tasks of a gang have one folder of artifacts, on whatever nodes they run.
  bool shares_artifacts = false;
  /// The cluster mounts storage volumes in tasks.
  bool mounts_storage = false;
  /// How long a muster-node whose task has ended waits for a server that does not answer. The server
  /// waits as long for a muster-node that is to send artifacts and is disconnected.
  std::chrono::milliseconds linger{600000};
  /// How long a muster-node that is to send artifacts may send nothing.
  std::chrono::milliseconds fetch_silence{600000};

  uint64_t log_quota = 0;                     ///< of each task's log, in bytes; 0: no limit
  TaskLimits limits;                          ///< of every task
  std::filesystem::path storage_folder;       ///< of storage volumes, if the folder is shared
  std::vector<std::filesystem::path> hidden;  ///< paths that are hidden from tasks
  std::string filter;                         ///< of the system calls of tasks; empty: none
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};
  std::chrono::milliseconds sample_interval{10000};

  std::string folder_on_node(bool is_shared) const {
    return is_shared ? folder.string() : folder_on_nodes;
  }
};

/// The engine's answers about its cluster. All are called on the loop's thread.
struct Lender {
  std::string cluster;  ///< its name in messages: "Slurm"

  /// The gang whose task a muster-node runs that has connected and proved that it has the key; null
  /// rejects it.
  std::function<GangPointer(const node::NodeConnection&)> gang_of;
  /// Whether the gang has its allocation, so that its tasks can be started.
  std::function<bool(const GangPointer&)> has_allocation;
  /// A muster-node whose task is not started has connected.
  std::function<void(const GangPointer&)> on_ready;
  std::function<void(const GangPointer&, const TaskPointer&)> on_lost;
  /// The muster-node of a started task was disconnected for five minutes. Returns whether to keep
  /// waiting for it.
  std::function<bool(const GangPointer&, const TaskPointer&)> on_silence;
  /// The muster-node was ordered to open a stream, and waits for the server to connect. Empty:
  /// muster-nodes call the server.
  std::function<void(const GangPointer&, const TaskPointer&, uint64_t stream)> connect_stream;

  // Why a task ended: a task that the cluster has stopped waits with its end until the reason is
  // known, so that the reason is reported first.
  std::function<void()> on_change;  ///< something of a task has changed
  /// Requests an early look at the cluster, which may report a reason.
  std::function<void()> look_soon;
  /// The number of the latest look at the cluster.
  std::function<uint64_t()> looks;
  /// No reason has come for a minute. Returns whether it may still come.
  std::function<bool(const GangPointer&, const TaskPointer&)> may_explain;
};

}  // namespace muster::engine::lent
