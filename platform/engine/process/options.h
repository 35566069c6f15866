// How a process engine is set up, and what its administrator says of the machine it runs on.
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
#include "engine/process/cgroup_limits.h"
#include "engine/process/cpu_choice.h"
#include "engine/process/team_places.h"

namespace muster::engine {

struct ProcessEngineOptions {
  std::filesystem::path folder;  ///< where the jobs' folders lie; made 0700
  std::filesystem::path shim;    ///< the muster-shim executable
  int task_slots = 256;          ///< how many tasks may run at once, whatever they ask for
  std::optional<DeclaredGpus> declared_gpus;    ///< in the place of those the machine has
  std::string node_pool = "default";            ///< of which nodes it is one
  std::map<std::string, std::string> topology;  ///< level -> domain: rack -> r1
  std::map<std::string, std::string> labels;    ///< beside those that were found; these win
  /// Files and folders that no task in a sandbox finds: it runs as the account of the server, which
  /// can read them all.
  std::vector<std::filesystem::path> hidden;
  /// Of a server for a team: what tasks find in the places of the server's account.
  std::optional<TeamPlaces> team;
  uint64_t log_quota = 0;                ///< bytes that the log of a task may have; 0: any number
  std::filesystem::path storage_folder;  ///< where the kStorage folders of projects lie; made 0700
  /// Writes the files of a tree of the project into the folder, which is empty. Called on another
  /// thread.
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};      ///< of what a task uses, after its start
  std::chrono::milliseconds sample_interval{10000};  ///< between two; 0: none are taken
  std::string nvml = kNvml;                          ///< asked for what GPUs are doing
  /// The limits of every task; the memory and CPU of its claim come on top.
  TaskLimits limits;
  bool holds_claims = false;             ///< tasks are held to the memory and CPUs that they claim
  std::vector<GroupPlace> group_places;  ///< where control groups for tasks can be made
  /// CPUs to which tasks that claim whole CPUs are bound, each to its own; empty: no task is bound.
  std::vector<Cpu> cpus;
  bool own_devices = false;  ///< sandboxed tasks can open some devices alone (device_files.h)
  /// The sandboxed tasks of a gang share a network that nothing else is in (shim/network.h).
  bool own_networks = false;
  std::string filter;  ///< of the system calls of tasks in sandboxes (task_filter.h); empty: none
  /// A task is not to outlive this process: the cluster that gave it its place takes that back.
  bool tasks_end_with_it = false;
};

}  // namespace muster::engine
