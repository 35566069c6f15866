// The nodes of a Kubernetes cluster, as Muster's scheduler sees them: their allocatable resources
// minus the requests of other pods.
//
// Pure. Thread-safety: none needed, a NodeBook has one owner.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"

namespace muster::engine::kubernetes {

struct NodeOptions {
  std::string owner;  ///< as PodSite::owner
  std::string space;  ///< of this server's pods
  /// The label with the pool of a node; nodes without it are in the default pool.
  std::string pool_label = "muster.dev/pool";
  /// Level -> label.
  std::map<std::string, std::string> topology = {{"region", "topology.kubernetes.io/region"},
                                                 {"zone", "topology.kubernetes.io/zone"},
                                                 {"rack", "topology.kubernetes.io/rack"},
                                                 {"host", "kubernetes.io/hostname"}};
  std::map<std::string, std::string> gpu_resources = {{"", "nvidia.com/gpu"}};
  std::vector<std::string> tolerations;  ///< of all pods of this server
};

/// The resources that a node has, or that a pod requests.
struct ClusterAmounts {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t pods = 0;
  std::map<std::string, int64_t> devices;  ///< by resource: "nvidia.com/gpu"

  ClusterAmounts& operator+=(const ClusterAmounts& other);
  ClusterAmounts& operator-=(const ClusterAmounts& other);
  bool operator==(const ClusterAmounts&) const = default;
};

/// The sum of the requests of a pod's containers, as the cluster's scheduler computes it. Empty:
/// its node has been freed, because the pod is over.
ClusterAmounts requests_of_pod(const nlohmann::json& pod);

/// The nodes, and the pods of others on them. Objects that are not of the expected form count as
/// nodes without resources, or pods without requests.
class NodeBook {
 public:
  explicit NodeBook(NodeOptions options) : options_(std::move(options)) {}

  // All return whether nodes() may have changed.
  bool set_node(const nlohmann::json& node);
  bool remove_node(const std::string& name);
  /// Pods of this server are ignored: its scheduler counts them.
  bool set_pod(const nlohmann::json& pod);
  bool remove_pod(const std::string& uid);

  /// By name.
  std::vector<Node> nodes() const;
  bool has(const std::string& name) const { return nodes_.count(name) > 0; }
  /// Empty: the node has no GPUs, or is unknown.
  std::string gpu_model_of(const std::string& name) const;
  /// Whether pods on the node can have images as volumes, from which they can run programs: kubelet
  /// 1.35 or newer, and containerd 2.1 or newer. Empty name: on all nodes.
  bool mounts_images(const std::string& name) const;

 private:
  struct KnownNode {
    Node node;  ///< with all that it has
    std::string gpu_resource;
    bool mounts_images = false;
    ClusterAmounts others;

    bool operator==(const KnownNode&) const = default;
  };
  struct KnownPod {
    std::string node;
    ClusterAmounts requests;
  };

  Node read(const nlohmann::json& node, std::string& gpu_resource) const;

  NodeOptions options_;
  std::map<std::string, KnownNode> nodes_;
  std::map<std::string, KnownPod> pods_;          ///< by uid
  std::map<std::string, ClusterAmounts> others_;  ///< by node, also of nodes that are not known yet
};

}  // namespace muster::engine::kubernetes
