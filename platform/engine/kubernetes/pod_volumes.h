// The volumes of a pod: the files and volumes of the job, and the writable folders that its task
// needs.
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/error.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

/// "IfNotPresent"
const char* pull_word(job::PullPolicy policy);

/// Sets the `volumes` of the pod, and the `volumeMounts` of the task's container.
void make_volumes(const PodJob& job, const PodTask& task, const PodSite& site,
                  nlohmann::json& volumes, nlohmann::json& mounts);

/// Adds a fault for each volume that no pod can have.
void check_volumes(const std::vector<job::Volume>& volumes, const PodSite& site,
                   std::vector<base::Fault>& faults);

/// Adds a fault for each claim, and each mount of a container beside the task, whose path has a volume
/// already: the API server refuses such a pod.
void check_mount_paths(const job::JobSpec& spec, std::vector<base::Fault>& faults);

}  // namespace muster::engine::kubernetes
