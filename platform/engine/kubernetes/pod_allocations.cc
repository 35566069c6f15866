#include "engine/kubernetes/pod_allocations.h"

#include <set>
#include <utility>

#include "engine/kubernetes/pod_requests.h"
#include "words/sentence.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

AllocationRevoked revoked(AllocationRevoked::Why why, job::KubernetesEnded end) {
  return {.why = why, .end = std::move(end), .advice = "", .node = "", .printed = {}};
}

}  // namespace

void PodAllocations::request(const GangId& gang, const AllocationRequest& request) {
  if (request.images.empty()) {
    return reports_.announce(gang, AllocationRefused{{.code = ErrorCode::kInternal,
                                                      .what = "no task was given for a pod"}});
  }
  PodJob job = pod_job_of(gang, request.images);
  job.choice = {.pools = request.node_pools,
                .gpu_models = request.gpu_models,
                .avoided_nodes = request.avoided_nodes};
  std::vector<PodTask> pods;
  for (const ImageRequest& image : request.images) pods.push_back(pod_task_of(image, ""));
  waiting_[gang] = prepare_(
      job, std::move(pods),
      [this, gang](const job::Fact& fact) {
        const PodGangPointer held = gangs_.find(gang);
        if (held) reports_.waits(held, {.reason = fact, .may_start = {}, .constraint = ""});
      },
      [this, gang, request](Result<void> how) { prepared(gang, request, std::move(how)); });
}

void PodAllocations::prepared(const GangId& gang, const AllocationRequest& request,
                              Result<void> how) {
  const auto handle = waiting_.extract(gang);
  const PodGangPointer held = gangs_.find(gang);
  if (how && held) return grant(held, request);
  const Error error = how ? Error{.code = ErrorCode::kUnavailable, .what = "its pods are gone"}
                          : std::move(how).error();
  using Why = AllocationRevoked::Why;
  if (error.code != ErrorCode::kUnavailable) {
    return reports_.announce(gang, AllocationRefused{error});
  }
  // Some pods found nodes and others did not: their nodes are freed, and the job waits again.
  const bool lacks_nodes = base::detail_of<LackOfNodes>(error) != nullptr;
  reports_.announce(gang,
                    revoked(lacks_nodes ? Why::kEvicted : Why::kNodeLost, {.text = error.what}));
}

/// The device plug-ins do not report to the API server which devices a pod has: each task gets
/// numbers that no other gang of this server has on the node.
void PodAllocations::grant(const PodGangPointer& gang, const AllocationRequest& request) {
  gang->places.clear();
  for (const TaskRequest& task : request.tasks) {
    const auto pod = gang->pods.find(task.task);
    if (pod == gang->pods.end() || !pod->second.facts) continue;
    const std::string& node = pod->second.facts->node;
    gang->places.push_back(
        {.task = task.task, .node = node, .devices = free_devices(node, task.resources.gpus)});
  }
  gangs_.save(gang);
  reports_.announce(gang->gang, AllocationGranted{.places = gang->places, .slurm_job = 0});
}

std::vector<int> PodAllocations::free_devices(const std::string& node, int count) const {
  std::set<int> taken;
  for (const PodGangPointer& gang : gangs_.all()) {
    if (gang->is_releasing) continue;
    for (const AllocatedPlace& place : gang->places) {
      if (place.node == node) taken.insert(place.devices.begin(), place.devices.end());
    }
  }
  std::vector<int> devices;
  for (int next = 0; static_cast<int>(devices.size()) < count; ++next) {
    if (taken.count(next) == 0) devices.push_back(next);
  }
  return devices;
}

void PodAllocations::revoke(const PodGangPointer& gang, const job::PodEnd& end) {
  reports_.announce(gang->gang, revoked(AllocationRevoked::Why::kEvicted, {.pod = end}));
}

}  // namespace muster::engine::kubernetes
