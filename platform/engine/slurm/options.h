// The options of the Slurm engine: members correspond to the server's flags --slurm-*.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/node/brief.h"
#include "engine/shim/task_limits.h"

namespace muster::engine::slurm {

struct SlurmEngineOptions {
  std::filesystem::path folder;    ///< of jobs; made with mode 0700
  std::filesystem::path programs;  ///< the folder of muster-node, muster-shim and the others, here
  std::string programs_on_nodes;   ///< the same on the nodes; empty: the same path
  std::string owner;  ///< the server's id, 16 hexadecimal digits, in the comments of its Slurm jobs
  std::string version;  ///< of Muster

  // The client of Slurm.
  std::string rest;  ///< "unix:///run/slurmrestd.sock", "http://host:6820"; empty: Slurm's programs
  std::string rest_user;  ///< the user at slurmrestd; empty: the user of the server
  /// A program that prints a token ("SLURM_JWT=..."); empty: `scontrol token`. A unix socket needs
  /// no token.
  std::vector<std::string> token_command;

  // Where the nodes call back.
  std::string callback_bind = "0.0.0.0";
  uint16_t callback_port = 0;               ///< 0: chosen once, and kept in the folder
  std::vector<std::string> callback_hosts;  ///< names or addresses of this machine; empty: its own

  node::Sharing sharing = node::Sharing::kAuto;
  /// If the folder is not shared: the folder on the nodes in which muster-OWNER is made for tasks;
  /// empty: /tmp.
  std::string node_folder;
  int tasks_per_node = 1;
  std::map<std::string, std::string> accounts;  ///< project -> account
  std::string default_account;                  ///< of other projects; "%p" is the project's name
  std::string qos;
  std::vector<std::string> sbatch_options;  ///< more #SBATCH options that the site needs

  /// Between two polls of the queue: after a change, and at rest.
  std::chrono::milliseconds quick_poll{3000};
  std::chrono::milliseconds slow_poll{15000};
  std::chrono::milliseconds nodes_poll{20000};
  /// How long the nodes of a started Slurm job may take to call back.
  std::chrono::milliseconds call_back_within{60000};
  /// How long a muster-node whose task has ended waits for a server that does not answer.
  std::chrono::milliseconds linger{600000};
  /// How long a muster-node that is to send artifacts may send nothing.
  std::chrono::milliseconds fetch_silence{600000};
  /// How long Muster keeps asking an accounting database that does not answer about a job that the
  /// controller has forgotten. After that, the job counts as unknown.
  std::chrono::milliseconds accounting_within{600000};

  uint64_t log_quota = 0;                ///< of each task's log, in bytes; 0: no limit
  TaskLimits limits;                     ///< of every task; the memory of its claim comes on top
  std::filesystem::path storage_folder;  ///< of storage volumes, if the folder is shared
  std::vector<std::filesystem::path> hidden;  ///< paths that are hidden from tasks
  std::string filter;                         ///< of the system calls of tasks; empty: none
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};
  std::chrono::milliseconds sample_interval{10000};

  /// The folder of Muster's programs on the nodes.
  std::string node_programs() const {
    return programs_on_nodes.empty() ? programs.string() : programs_on_nodes;
  }
  /// The folder of jobs on a node. If it is not shared, it contains nothing of others, because
  /// muster-nodes remove what killed muster-nodes have left in it.
  std::string folder_on_node(bool is_shared) const {
    if (is_shared) return folder.string();
    return (node_folder.empty() ? "/tmp" : node_folder) + "/muster-" + owner;
  }
};

}  // namespace muster::engine::slurm
