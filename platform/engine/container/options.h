// The configuration of a container engine, and its parts that the server's configuration gives as
// text.
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
#include "engine/shim/task_limits.h"

namespace muster::engine {

/// A machine whose Docker or Podman runs tasks: one node.
struct ContainerHostOptions {
  std::string name;
  Endpoint endpoint;
  std::string address;  ///< at which other hosts reach its tasks; empty: the endpoint's host
  std::optional<DeclaredGpus> declared_gpus;  ///< unset: no GPUs; the engine does not report them
  std::string pool = "default";
  int task_slots = 256;
  std::map<std::string, std::string> topology;  ///< level -> domain
};

/// How often a host is polled while it answers (`interval`), and while it does not: after
/// `first_pause`, which doubles up to `longest_pause`. A poll without an answer for `silence`
/// counts as a fault.
struct AskingPace {
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds first_pause{500};
  std::chrono::milliseconds longest_pause{30'000};
  std::chrono::milliseconds silence{20'000};
};

struct ContainerEngineOptions {
  std::filesystem::path folder;    ///< contains the jobs' folders; created with mode 0700
  std::filesystem::path programs;  ///< the folder of muster-shim, muster-helper and muster-rsh
  /// Label that separates this server's containers from those of other servers on the same hosts.
  std::string owner;
  std::vector<ContainerHostOptions> hosts;  ///< at least one
  /// Files and folders of this machine that no volume may contain.
  std::vector<std::filesystem::path> hidden;
  int64_t artifact_bytes = int64_t{64} << 30;  ///< limit for a job's artifacts
  uint64_t log_quota = 0;  ///< limit for the log of a task in bytes; 0: no limit
  std::string filter;      ///< system call filter of tasks without additional rights; empty: none
  TaskLimits limits;       ///< of every task; the memory and CPUs of its claim come on top
  std::chrono::milliseconds first_sample{2000};  ///< first sample of a task's usage after its start
  std::chrono::milliseconds sample_interval{10000};  ///< between samples; 0: no samples
  /// Writes the files of a project's tree into an empty folder. Called on another thread.
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  Patience patience;
  AskingPace pace;
};

// --- from the server's configuration

/// The hosts as the configuration gives them, by name.
struct HostTexts {
  std::map<std::string, std::string> endpoints;  ///< empty: only the engine of this machine
  std::map<std::string, std::string> addresses;
  std::map<std::string, std::string> gpus;
  std::filesystem::path certificates;
  std::string own_name;  ///< name of this machine, if `endpoints` is empty
  std::string own_gpus;
};

/// Parses names, endpoints, addresses and GPUs of hosts; other options keep their defaults. I/O:
/// checks whether certificates exist.
///
/// Errors: kInvalid with a fault for each malformed text, and for each host that other hosts could
/// not reach; those of find_endpoint().
Result<std::vector<ContainerHostOptions>> read_hosts(const HostTexts& texts,
                                                     const Surroundings& here);

/// Files and folders of this machine that give full access to the hosts' engines: sockets and
/// client certificates.
std::vector<std::filesystem::path> ways_in(const std::vector<ContainerHostOptions>& hosts);

/// The value of ContainerEngineOptions::owner: created once, and stored in the jobs' folder.
Result<std::string> owner_of(const std::filesystem::path& jobs_folder);

}  // namespace muster::engine
