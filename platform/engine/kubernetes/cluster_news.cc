#include "engine/kubernetes/cluster_news.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace muster::engine::kubernetes {

ClusterView::Hooks ClusterNews::hooks() {
  ClusterView::Hooks hooks{.on_pod = [this](const OwnPod& own) { pod_changed(own); },
                           .on_pod_gone = [this](const OwnPod& own) { pod_gone(own); },
                           .on_warning = [this](const PodEvent& event) { warned(event); },
                           .on_synced = [this] { synced(); },
                           .on_reach = [this] { parts_.preparations.look_at_all(); }};
  if (!options_.are_called()) {
    hooks.on_container = [this](const OwnPod& own) { container_started(own); };
  }
  if (options_.pods.queue == PodQueue::kKueue) {
    hooks.on_workload = [this](const std::string& group, const std::string& why) {
      workload_changed(group, why);
    };
  }
  return hooks;
}

void ClusterNews::pod_changed(const OwnPod& own) {
  const PodGangPointer gang = parts_.gangs.find_by_name(own.gang);
  if (gang == nullptr) {
    if (!parts_.view.is_synced() && !own.gang.empty()) unknown_.insert(own.gang);
    return;
  }
  const auto found = gang->pods.find(own.task);
  if (found == gang->pods.end() || gang->is_releasing) return;
  HeldPod& pod = found->second;
  if (gang->is_unreadable && gang->uid.empty()) gang->uid = own.facts.owner;
  // A pod of an earlier owner, or one that was given up, has the same name.
  const bool is_old = own.facts.owner != gang->uid || own.facts.uid == pod.unneeded_uid ||
                      (own.facts.is_being_deleted && pod.is_desired && !pod.facts);
  if (is_old) return;
  if (!gang->needs_pod(own.task)) {
    pod.unneeded_uid = own.facts.uid;
    if (own.facts.is_being_deleted) return;
    return parts_.objects.remove_pod(gang, own.task, own.facts.uid, std::chrono::seconds(1));
  }
  pod.facts = own.facts;
  pod.is_created = true;
  parts_.lines.keep(gang, own.task);
  parts_.preparations.look(gang);
  parts_.losses.examine(gang, own.task);
}

void ClusterNews::pod_gone(const OwnPod& own) {
  const PodGangPointer gang = parts_.gangs.find_by_name(own.gang);
  if (gang == nullptr || gang->is_releasing) return;
  const auto found = gang->pods.find(own.task);
  if (found == gang->pods.end()) return;
  HeldPod& pod = found->second;
  if (!pod.facts || pod.facts->uid != own.facts.uid) return;
  pod.facts = own.facts;
  pod.is_gone = true;
  parts_.lines.keep(gang, own.task);
  parts_.preparations.look(gang);
  parts_.losses.examine(gang, own.task);
}

void ClusterNews::warned(const PodEvent& event) {
  const PodGangPointer gang = parts_.gangs.find_by_pod_name(event.pod);
  if (gang == nullptr) return;
  for (auto& [task, pod] : gang->pods) {
    if (!pod.facts || pod.facts->name != event.pod) continue;
    // Events outlive their pods, and a later pod may have the name.
    if (!event.uid.empty() && event.uid != pod.facts->uid) return;
    pod.event = event;
    return parts_.preparations.look(gang);
  }
}

/// A server that connects to its pods does so at once.
void ClusterNews::container_started(const OwnPod& own) {
  const PodGangPointer gang = parts_.gangs.find_by_name(own.gang);
  if (gang == nullptr || gang->is_releasing) return;
  const auto found = gang->pods.find(own.task);
  if (found == gang->pods.end() || !found->second.facts) return;
  HeldPod& pod = found->second;
  if (pod.facts->uid != own.facts.uid) return;
  pod.is_started = true;
  parts_.lines.keep(gang, own.task);
}

void ClusterNews::workload_changed(const std::string& group, const std::string& why) {
  const PodGangPointer gang = parts_.gangs.find_by_name(group);
  if (gang == nullptr || gang->queue_text == why) return;
  gang->queue_text = why;
  parts_.preparations.look(gang);
}

/// Pods that should be there and are not were deleted while no server watched; pods without a record
/// are leftovers of a server that died.
void ClusterNews::synced() {
  for (const std::string& name : std::exchange(unknown_, {})) {
    base::log_warning("deletes the pods of " + name + ": they belong to no job of this server");
    parts_.objects.remove_orphan(name);
  }
  for (const PodGangPointer& gang : parts_.gangs.all()) {
    if (gang->is_releasing) continue;
    for (auto& [task, pod] : gang->pods) {
      if (pod.facts || pod.is_desired || !gang->needs_pod(task)) continue;
      pod.facts.emplace();
      pod.facts->name = pod_name(options_.pods.owner, gang->gang, task);
      pod.is_gone = true;
    }
    const auto held = gang->tasks;
    for (const auto& [name, task] : held) parts_.losses.examine(gang, name);
  }
}

}  // namespace muster::engine::kubernetes
