// The containers of a pod: the task's, with muster-node as its program; the init container that brings
// Muster's programs where the node cannot mount them; and the init containers and sidecars that the job
// brings along. Native sidecars are init containers that are never waited for (Kubernetes 1.29).
//
// Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

/// The common settings of the containers of a pod.
struct PodFrame {
  const PodAccount& account;
  const nlohmann::json& mounts;  ///< of the task's container
  int64_t grace = 0;             ///< of the pod, in seconds
};

/// Sets `containers` and `initContainers` of the pod's spec.
void add_containers(const PodJob& job, const PodTask& task, const PodSite& site,
                    const PodFrame& frame, nlohmann::json& spec);

/// "500m", and bytes as a plain number: a Kubernetes quantity.
std::string cpu_quantity(int64_t milli);

}  // namespace muster::engine::kubernetes
