#include "engine/kubernetes/losses.h"

#include <chrono>
#include <utility>

#include "engine/kubernetes/pod_state.h"

namespace muster::engine::kubernetes {

namespace {

/// A watch is behind by less than this, or the API server is away.
constexpr std::chrono::milliseconds kWatchDelay{1000};

/// Whether Kubernetes or a user has ended the pod. A pod that ends because its muster-node
/// left has no reason, and was not taken.
bool was_taken(const HeldPod& pod) {
  return pod.is_gone || (pod.facts && (pod.facts->is_being_deleted || !pod.facts->reason.empty() ||
                                       !pod.facts->disruption.empty()));
}

bool is_for_others(job::PodEnd::Cause cause) {
  return cause == job::PodEnd::Cause::kPreempted || cause == job::PodEnd::Cause::kQueueEvicted;
}

}  // namespace

void PodLosses::examine(const PodGangPointer& gang, const std::string& task) {
  const TaskPointer held = gang->task(task);
  const auto found = gang->pods.find(task);
  if (held == nullptr || found == gang->pods.end() || gang->is_releasing) return;
  HeldPod& pod = found->second;
  if (!gang->seat_of(*held).started || held->is_reported || !pod.facts) return;
  // It has ended by a signal, and waits for the reason.
  if (held->was_ended_by_cluster()) {
    const bool is_known = was_taken(pod);
    if (is_known) lose(gang, held, pod);
    return;
  }
  const bool is_over = pod.is_gone || pod.facts->is_over();
  if (!is_over) return;
  // The artifacts of an ended task come over a connection of their own.
  if (held->line != nullptr || held->end) return await_last_words(gang, task, pod);
  lose(gang, held, pod);
}

void PodLosses::await_last_words(const PodGangPointer& gang, const std::string& task,
                                 HeldPod& pod) {
  if (pod.check) return;
  pod.check = loop_.after(last_words_, [this, weak = std::weak_ptr(gang), task] {
    const auto still = weak.lock();
    if (!still) return;
    const auto its = still->pods.find(task);
    const TaskPointer its_task = still->task(task);
    if (its == still->pods.end() || its_task == nullptr) return;
    its->second.check.reset();
    if (!its_task->was_ended_by_cluster()) lose(still, its_task, its->second);
    // The end of a task whose artifacts have all arrived waits until they are unpacked.
    examine(still, task);
  });
}

void PodLosses::lose(const PodGangPointer& gang, const TaskPointer& task, const HeldPod& pod) {
  const job::ExitStatus end = end_of_pod(*pod.facts, pod.is_gone);
  const bool is_for_another = end.pod && is_for_others(end.pod->cause);
  if (preempted_ == nullptr || !is_for_another || tasks_.tasks.has_own_end(gang, task)) {
    return tasks_.tasks.lose(gang, task, end);
  }
  // The gang waits again as a whole.
  preempted_(gang, *end.pod);
  const auto tasks = gang->tasks;
  for (const auto& [name, each] : tasks) tasks_.tasks.lose(gang, each, end);
}

void PodLosses::look_soon() {
  if (timer_) return;
  timer_ = loop_.after(kWatchDelay, [this] {
    timer_.reset();
    look();
  });
}

void PodLosses::look() {
  ++looks_;
  for (const PodGangPointer& gang : gangs_.all()) {
    const auto tasks = gang->tasks;
    for (const auto& [name, task] : tasks) examine(gang, name);
    tasks_.tasks.clear_suspicions(gang, looks_);
  }
}

}  // namespace muster::engine::kubernetes
