// The options of the Kubernetes engine. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/kubernetes/access.h"
#include "engine/kubernetes/nodes.h"
#include "engine/kubernetes/pod.h"
#include "engine/shim/task_limits.h"

namespace muster::engine::kubernetes {

struct KubernetesOptions {
  std::filesystem::path folder;  ///< contains the jobs' folders; made with mode 0700
  std::string version;           ///< of Muster
  AccessOptions access;          ///< where the cluster and the credentials are
  PodSite pods;                  ///< `space`: empty: that of the context
  NodeOptions nodes;             ///< `owner`, `space` and `tolerations` follow from `pods`

  /// Pods call the server at these addresses. Empty: the server connects to pods through the API
  /// server.
  std::vector<std::string> callback_hosts;
  uint16_t callback_port = 0;  ///< 0: the same port as before, or any free port
  /// At which muster-node listens in its pod, if the server connects to it.
  uint16_t pod_port = 7447;

  std::chrono::milliseconds pod_timeout{600'000};  ///< until all pods of a gang run
  /// How long a muster-node whose task has ended waits for a server that does not answer.
  std::chrono::milliseconds linger{std::chrono::hours(6)};

  uint64_t log_quota = 0;  ///< of each task's log, in bytes; 0: no limit
  TaskLimits limits;       ///< of every task
  std::function<base::Result<void>(const std::string& project, const std::string& tree,
                                   const std::filesystem::path& folder)>
      unpack_tree;
  std::chrono::milliseconds first_sample{2000};
  std::chrono::milliseconds sample_interval{10000};

  bool are_called() const { return !callback_hosts.empty(); }
  /// Whether the cluster decides when and where gangs run.
  bool has_queue() const { return pods.queue != PodQueue::kMuster; }
};

}  // namespace muster::engine::kubernetes
