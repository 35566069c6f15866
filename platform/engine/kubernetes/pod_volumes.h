// The volumes of a pod: what the job brings or names, and the writable places that its task needs.
//
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

struct PodVolumes {
  nlohmann::json volumes;  ///< PodSpec.volumes
  nlohmann::json mounts;   ///< of the task's container
};
PodVolumes volumes_of(const PodJob& job, const PodTask& task, const PodSite& site);

/// Adds a fault for each volume that no pod can have.
void check_volumes(const std::vector<job::Volume>& volumes, const PodSite& site,
                   std::vector<base::Fault>& faults);

}  // namespace muster::engine::kubernetes
