// The content of the pods of a gang: from the requests for its images, or from the plans of its
// tasks.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

/// The parts of a job that all of its pods share. REQUIRES: at least one image, with its job.
PodJob pod_job_of(const GangId& gang, const std::vector<ImageRequest>& images);
/// The same for a start without prepare().
PodJob pod_job_of(const GangId& gang, const launch::TaskPlan& plan);

/// `gpu_model`: of the task's node; empty: unknown.
PodTask pod_task_of(const ImageRequest& image, const std::string& gpu_model);
PodTask pod_task_of(const launch::TaskPlan& plan, const std::string& gpu_model);

}  // namespace muster::engine::kubernetes
