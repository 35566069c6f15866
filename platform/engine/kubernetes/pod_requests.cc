#include "engine/kubernetes/pod_requests.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "job/pod_container.h"

namespace muster::engine::kubernetes {

PodJob pod_job_of(const GangId& gang, const std::vector<ImageRequest>& images) {
  const job::Job& job = *images.front().job;
  PodJob shared{.gang = gang,
                .name = job.spec.name,
                .project = job.spec.project,
                .owner = job.owner,
                .container = job.spec.container,
                .options = job.spec.kubernetes,
                .volumes = job.spec.volumes,
                .logins = {},
                .grace = job.spec.grace,
                .pods = images.size(),
                .is_single = job.spec.kind == job::Kind::kSingle};
  for (const ImageRequest& image : images) {
    if (image.username.empty()) continue;
    PodLogin login{.registry = image.registry,
                   .image = image.image,
                   .username = image.username,
                   .password = image.password};
    const bool is_known =
        std::find(shared.logins.begin(), shared.logins.end(), login) != shared.logins.end();
    if (!is_known) shared.logins.push_back(std::move(login));
  }
  return shared;
}

PodTask pod_task_of(const ImageRequest& image, const std::string& gpu_model) {
  const job::Job& job = *image.job;
  PodTask pod{.task = image.task,
              .hostname = image.task,
              .node = image.node,
              .image = image.image,
              .user = image.user,
              .resources = {},
              .gpus = 0,
              .gpu_model = gpu_model,
              .folders = {}};
  for (const job::Task& task : job.tasks) {
    if (task.name != image.task) continue;
    pod.hostname = task.hostname;
    pod.resources = job::resources_of(job.spec, task.role);
    pod.gpus = pod.resources.gpus;
    pod.containers = job::pod_containers_of(job.spec, task.role);
  }
  if (job.spec.kind == job::Kind::kMpi) pod.folders = {"/etc/mpi"};
  return pod;
}

PodJob pod_job_of(const GangId& gang, const launch::TaskPlan& plan) {
  return {.gang = gang,
          .name = gang.job_id,
          .project = plan.project,
          .owner = plan.owner,
          .container = plan.container,
          .options = {},
          .volumes = plan.volumes,
          .logins = {},
          .grace = plan.grace,
          .pods = 1};
}

PodTask pod_task_of(const launch::TaskPlan& plan, const std::string& gpu_model) {
  PodTask pod{.task = plan.task,
              .hostname = plan.hostname,
              .node = plan.node,
              .image = plan.image,
              .user = std::to_string(plan.account.uid) + ":" + std::to_string(plan.account.gid),
              .resources = plan.resources,
              .gpus = plan.resources.gpus,
              .gpu_model = gpu_model,
              .folders = {}};
  std::set<std::string> folders;
  for (const auto& [file, place] : plan.also_at) {
    folders.insert(std::filesystem::path(place).parent_path().string());
  }
  pod.folders.assign(folders.begin(), folders.end());
  return pod;
}

}  // namespace muster::engine::kubernetes
