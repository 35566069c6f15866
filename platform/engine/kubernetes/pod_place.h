// Where a pod may run: its node, or the nodes among which the cluster chooses; tolerations and classes.
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

/// Adds the fields to a PodSpec.
void add_place(const PodJob& job, const PodTask& task, const PodSite& site, nlohmann::json& spec);

/// The resource of a GPU model; "" for the model: unknown.
std::string gpu_resource(const std::string& model, const PodSite& site);

}  // namespace muster::engine::kubernetes
