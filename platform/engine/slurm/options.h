// How a Slurm engine is set up.
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

namespace muster::engine::slurm {

struct SlurmEngineOptions {
  std::filesystem::path folder;    ///< where the jobs' folders lie; made 0700
  std::filesystem::path programs;  ///< the folder of muster-node, muster-shim and their like, here
  std::string programs_on_nodes;   ///< the same on the nodes; empty: the same path
  std::string owner;    ///< of the server: 16 hexadecimal digits that its jobs are known by
  std::string version;  ///< of Muster

  // How Slurm is asked.
  std::string rest;       ///< "unix:///run/slurmrestd.sock", "http://host:6820"; empty: by programs
  std::string rest_user;  ///< whom slurmrestd is asked as; empty: who the server runs as
  /// A program that prints a token ("SLURM_JWT=..."); empty: `scontrol token`. Of a unix socket
  /// none is needed.
  std::vector<std::string> token_command;

  // Where the nodes call back.
  std::string callback_bind = "0.0.0.0";
  uint16_t callback_port = 0;               ///< 0: chosen once, and kept in the folder
  std::vector<std::string> callback_hosts;  ///< names or addresses of this machine; empty: its own

  node::Sharing sharing = node::Sharing::kAuto;
  std::string node_folder;  ///< where it is not shared; empty: /tmp/muster-OWNER
  int tasks_per_node = 1;
  std::map<std::string, std::string> accounts;  ///< project -> account
  std::string
      default_account;  ///< of projects that are not named there; "%p" is the project's name
  std::string qos;
  std::vector<std::string> sbatch_options;  ///< further lines of #SBATCH, as the site needs them

  /// Between two looks at the queue: after something has changed, and at rest.
  std::chrono::milliseconds quick_poll{3000};
  std::chrono::milliseconds slow_poll{15000};
  std::chrono::milliseconds nodes_poll{20000};
  /// How long the nodes of a job that Slurm has started may take to call back.
  std::chrono::milliseconds call_back_within{60000};
  /// How long a muster-node whose task has ended waits for a server that does not answer.
  std::chrono::milliseconds linger{600000};

  uint64_t log_quota = 0;                ///< bytes that the log of a task may have; 0: any number
  std::filesystem::path storage_folder;  ///< of storage volumes, where the folder is shared
  std::vector<std::filesystem::path> hidden;  ///< what no task finds
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};
  std::chrono::milliseconds sample_interval{10000};
};

}  // namespace muster::engine::slurm
