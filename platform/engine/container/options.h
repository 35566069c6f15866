// How a container engine is set up.
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
#include "engine/container/docker_client.h"
#include "engine/container/endpoint.h"
#include "engine/host_facts.h"

namespace muster::engine {

/// A machine whose Docker or Podman runs tasks: one node.
struct ContainerHostOptions {
  std::string name;
  Endpoint endpoint;
  std::string address;  ///< where other hosts reach its tasks; empty: as the endpoint names it
  std::optional<DeclaredGpus> declared_gpus;  ///< unset: none, for its engine cannot be asked
  std::string pool = "default";
  int task_slots = 256;
  std::map<std::string, std::string> topology;  ///< level -> domain
};

struct ContainerEngineOptions {
  std::filesystem::path folder;    ///< where the jobs' folders lie; made 0700
  std::filesystem::path programs;  ///< the folder of muster-shim, muster-helper and muster-rsh
  /// Tells this server's containers from those of others on the same hosts: a label of each.
  std::string owner;
  std::vector<ContainerHostOptions> hosts;  ///< at least one
  /// Files and folders of this machine that no volume may show.
  std::vector<std::filesystem::path> hidden;
  int64_t artifact_bytes = int64_t{64} << 30;  ///< the most that is fetched of a job's artifacts
  uint64_t log_quota = 0;  ///< bytes that the log of a task may have; 0: any number
  std::chrono::milliseconds first_sample{2000};      ///< of what a task uses, after its start
  std::chrono::milliseconds sample_interval{10000};  ///< between two; 0: none are taken
  /// Writes the files of a tree of the project into the folder, which is empty. Called on another
  /// thread.
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  Patience patience;
};

}  // namespace muster::engine
