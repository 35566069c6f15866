// The settings of a process engine.
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
#include "engine/host_facts.h"
#include "engine/nvml_library.h"
#include "engine/process/accounts.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/cpu_choice.h"
#include "engine/process/egress.h"
#include "engine/process/team_places.h"

namespace muster::engine {

struct ProcessEngineOptions {
  std::filesystem::path folder;                 ///< the folder of jobs; made with mode 0700
  std::filesystem::path shim;                   ///< the muster-shim executable
  int task_slots = 256;                         ///< limit of tasks that run at once
  std::optional<DeclaredGpus> declared_gpus;    ///< replace the GPUs that the machine has
  std::string node_pool = "default";            ///< the pool that this machine belongs to
  std::map<std::string, std::string> topology;  ///< level -> domain, such as rack -> r1
  std::map<std::string, std::string> labels;    ///< added to the labels of the machine; these win
  /// Files and folders that are hidden from tasks in sandboxes. Tasks run as the server's account,
  /// which can read all of these.
  std::vector<std::filesystem::path> hidden;
  /// Set on a server for a team: what tasks see in the places of the server's account.
  std::optional<TeamPlaces> team;
  /// Whose ids the tasks of a team have; nothing: those of the server.
  std::optional<AccountSource> accounts;
  uint64_t log_quota = 0;                ///< limit of a task's log in bytes; 0: no limit
  std::filesystem::path storage_folder;  ///< the storage volumes of projects; made with mode 0700
  /// Writes the files of a tree (files that a job brings along) into an empty folder. Called on
  /// another thread.
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};      ///< from a task's start to its first sample
  std::chrono::milliseconds sample_interval{10000};  ///< between samples; 0: no samples
  std::string nvml = kNvml;                          ///< the NVML library, which measures GPUs
  /// The limits of every task, to which holds_claims adds the task's own memory and CPUs.
  TaskLimits limits;
  bool holds_claims = false;             ///< limit each task to the memory and CPUs that it claims
  std::vector<GroupPlace> group_places;  ///< where control groups for tasks can be made
  /// CPUs to which tasks that claim whole CPUs are bound, each to its own; empty: no task is bound.
  std::vector<Cpu> cpus;
  bool own_devices = false;  ///< sandboxed tasks can open some devices alone (device_files.h)
  /// The sandboxed tasks of each gang get a network of their own (shim/network.h).
  bool own_networks = false;
  std::optional<EgressOptions> egress;  ///< of these networks; empty: none
  std::string filter;  ///< seccomp filter for tasks in sandboxes (task_filter.h); empty: none
  /// This process runs in a container that is made for one task, and that is its sandbox: a folder
  /// of the container, as a task of `sandbox` kNone sees its generated files ("/generated"). Empty:
  /// there is no such container.
  std::filesystem::path generated_in_container;
  /// Tasks end with this process. Set by muster-node, which lives only as long as the cluster's
  /// allocation.
  bool tasks_end_with_it = false;

  /// The ids that this process needs an id space for; nullptr: none.
  const IdSpace* id_space() const {
    return accounts && accounts->space ? &*accounts->space : nullptr;
  }
};

/// Removes a tree with files of tasks in it, which may belong to ids of theirs.
base::Result<void> remove_tree_of_tasks(const ProcessEngineOptions& options,
                                        const std::filesystem::path& path);

}  // namespace muster::engine
