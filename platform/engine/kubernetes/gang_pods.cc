#include "engine/kubernetes/gang_pods.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace muster::engine::kubernetes {

std::string GangPods::gpu_model_on(const std::string& node) const {
  return parts_.view.gpu_model_of(node);
}

bool GangPods::mounts_programs_on(const std::string& node) const {
  switch (site_.programs) {
    case ProgramsBy::kImageVolume:
      return true;
    case ProgramsBy::kInitContainer:
      return false;
    case ProgramsBy::kNode:
      break;
  }
  return parts_.view.mounts_images(node);
}

std::shared_ptr<void> GangPods::prepare(const PodJob& job, std::vector<PodTask> pods,
                                        Preparations::Progress progress, Preparations::Done done,
                                        Preparations::Since since) {
  PodGangPointer gang = parts_.gangs.find(job.gang);
  if (gang != nullptr && gang->is_releasing) {
    return prepare_later(gang, job, std::move(pods), std::move(progress), std::move(done), since);
  }
  const bool is_new = gang == nullptr;
  if (is_new) gang = parts_.gangs.add(job.gang, random_.bytes<std::tuple_size_v<rsh::Key>>());
  gang->job = job;
  std::vector<std::string> names;
  for (PodTask& task : pods) {
    names.push_back(task.task);
    HeldPod& pod = parts_.gangs.add_task(gang, task.task);
    const lent::Seat& seat = gang->seat_of(*gang->tasks.at(task.task));
    if (seat.started) continue;
    // Without a node in its plan, the cluster has chosen the node.
    const bool is_elsewhere =
        pod.is_desired && !pod.plan.node.empty() && pod.plan.node != task.node;
    if (is_elsewhere) drop_pod(gang, task.task);
    if (pod.is_desired) continue;
    task.index = seat.index;
    task.mounts_programs = mounts_programs_on(task.node);
    pod.is_desired = true;
    pod.plan = std::move(task);
  }
  create(gang, is_new);
  return parts_.preparations.add(gang, std::move(names), std::move(progress), std::move(done),
                                 since);
}

/// A new gang's record must be on disk before any of its objects exist: a server that finds objects
/// without a record deletes them.
void GangPods::create(const PodGangPointer& gang, bool is_new) {
  if (!is_new) {
    parts_.gangs.save(gang);
    return parts_.objects.create(gang);
  }
  parts_.gangs.shared().save_durably(
      gang, [this, weak = std::weak_ptr(gang)](const base::Result<void>& saved) {
        const PodGangPointer still = weak.lock();
        if (still == nullptr) return;
        if (!saved) still->fault = saved.error();
        parts_.objects.create(still);
        parts_.preparations.look(still);
      });
}

/// Objects of the same names are being deleted.
std::shared_ptr<void> GangPods::prepare_later(const PodGangPointer& leaving, const PodJob& job,
                                              std::vector<PodTask> pods,
                                              Preparations::Progress progress,
                                              Preparations::Done done, Preparations::Since since) {
  const auto handle = std::make_shared<std::shared_ptr<void>>();
  leaving->when_released.emplace_back([this, weak = std::weak_ptr(handle), job,
                                       pods = std::move(pods), progress = std::move(progress),
                                       done = std::move(done), since]() mutable {
    const auto still = weak.lock();
    if (!still) return;
    *still = prepare(job, std::move(pods), std::move(progress), std::move(done), since);
  });
  return handle;
}

void GangPods::give_up(const PodGangPointer& gang, const std::vector<std::string>& names) {
  const bool is_needed =
      std::any_of(gang->tasks.begin(), gang->tasks.end(), [&](const auto& named) {
        return gang->seat_of(*named.second).started ||
               parts_.preparations.is_waited_for(gang, named.first);
      });
  if (!is_needed) return parts_.objects.release(gang);
  for (const std::string& name : names) {
    const TaskPointer task = gang->task(name);
    if (task == nullptr || gang->seat_of(*task).started) continue;
    if (parts_.preparations.is_waited_for(gang, name)) continue;
    drop_pod(gang, name);
  }
}

/// REQUIRES: the task is not started.
void GangPods::drop_pod(const PodGangPointer& gang, const std::string& task) {
  HeldPod& pod = gang->pods.at(task);
  const std::string uid = pod.facts ? pod.facts->uid : pod.unneeded_uid;
  parts_.objects.remove_pod(gang, task, uid, std::chrono::seconds(1));
  HeldPod next;
  next.removal = std::move(pod.removal);
  next.unneeded_uid = uid;
  pod = std::move(next);
  // The muster-node of a later pod of this name has a connection of its own.
  auto line = std::exchange(gang->tasks.at(task)->line, nullptr);
  if (line == nullptr) return;
  line->send(node::Farewell{});
  parts_.loop.post([line = std::move(line)] {});  // a handler of it may be running
}

std::vector<launch::ImageFacts> GangPods::facts_of(const GangId& name,
                                                   const std::vector<ImageRequest>& images) const {
  std::vector<launch::ImageFacts> all;
  const PodGangPointer gang = parts_.gangs.find(name);
  for (const ImageRequest& image : images) {
    launch::ImageFacts facts;
    const TaskPointer task = gang == nullptr ? nullptr : gang->task(image.task);
    if (task != nullptr && task->line != nullptr && task->line->hello().image) {
      facts = *task->line->hello().image;
    }
    facts.image = image.image;
    facts.id = image.image;
    if (gang != nullptr && gang->pods.count(image.task) > 0) {
      const auto& pod = gang->pods.at(image.task);
      if (pod.facts && !pod.facts->task.image_id.empty()) facts.id = pod.facts->task.image_id;
    }
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace muster::engine::kubernetes
