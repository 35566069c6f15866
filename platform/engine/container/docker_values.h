// The values of the Engine API, without their JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace muster::engine {

/// The engine at an endpoint.
struct DockerInfo {
  std::string api_version;  ///< the version in use: the highest that both sides support
  bool is_podman = false;
  std::string version;
  std::string os;            ///< "linux"
  std::string architecture;  ///< the name that images use: "amd64", "arm64"
  std::string host_name;
  int cpus = 0;
  int64_t memory_bytes = 0;
  bool has_nvidia_runtime = false;
  bool has_cdi = false;      ///< Docker only: accepts CDI device names
  bool limits_swap = false;  ///< the kernel can keep a container from swapping
};

struct DockerImage {
  std::string id;
  std::string architecture;
  std::string os;
  std::string user;
  std::string folder;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< NAME=value
};

struct DockerMount {
  enum class Kind { kVolume, kBind, kTmpfs } kind = Kind::kVolume;
  std::string source;  ///< a volume's name (empty: anonymous), or a path of the host
  std::string target;
  bool read_only = false;
  int64_t tmpfs_bytes = 0;

  bool operator==(const DockerMount&) const = default;
};

/// In the environment of a container without GPUs. Where NVIDIA's runtime is the engine's default,
/// it would otherwise give all GPUs to each container whose image asks for them, as CUDA images do.
inline constexpr const char* kNoGpus = "NVIDIA_VISIBLE_DEVICES=void";

struct ContainerConfig {
  std::string name;
  std::string image;
  std::string hostname;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::string folder;
  std::map<std::string, std::string> labels;
  std::vector<DockerMount> mounts;
  std::string network;               ///< name; "host": the host's network
  std::vector<std::string> aliases;  ///< on that network
  std::vector<std::pair<std::string, std::string>> extra_hosts;  ///< name -> address
  int64_t cpu_milli = 0;                                         ///< 0: no limit
  int64_t memory_bytes = 0;                                      ///< 0: no limit
  int64_t processes = 0;          ///< and threads; 0: as many as the host can bear
  int64_t shm_bytes = 0;          ///< 0: the engine's default
  std::vector<std::string> gpus;  ///< the engine's names: "0", "GPU-8f3..."
  bool read_only_root = false;
  bool no_new_privileges = true;
  bool drop_all_capabilities = true;
  std::vector<std::string> capabilities;  ///< added
  std::vector<std::string>
      hidden;  ///< files of /proc that only Podman hides, in addition to its own
  bool open_input = false;

  bool operator==(const ContainerConfig&) const = default;
};

struct ContainerState {
  std::string id;
  std::string name;
  std::string state;  ///< "created", "running", "exited", "dead", ...
  int exit_code = 0;
  bool out_of_memory = false;
  std::string error;
  std::optional<base::Time> finished;
  std::map<std::string, std::string> labels;
};

/// A change of a container.
struct DockerEvent {
  std::string action;  ///< "die", "oom", "start", "destroy"
  std::string id;
  std::map<std::string, std::string> attributes;  ///< include the labels and exitCode
};

struct PullProgress {
  std::string status;  ///< "Downloading"
  int64_t done_bytes = 0;
  int64_t all_bytes = 0;  ///< 0: unknown
};

struct RegistryAccess {
  std::string server;
  std::string username;
  std::string password;
};

/// A file or folder in a container.
struct PathFacts {
  std::string name;
  int64_t size = 0;
  uint32_t mode = 0;  ///< permissions: 0755
  bool is_folder = false;
  std::string link;  ///< target of a symbolic link
};

struct DockerExec {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string user;
  std::string folder;
  bool terminal = false;
  bool input = true;
};

struct DockerExit {
  bool running = false;
  int code = 0;
};

}  // namespace muster::engine
