#include "engine/kubernetes/objects.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/json_text.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::chrono::milliseconds kSoonAgain{300};
constexpr std::chrono::milliseconds kLaterAgain{2000};

bool is_quota(const Error& error) {
  const ApiRefusal* const refusal = refusal_of(error);
  // A quota is a refusal like any other (403), known by its sentence alone.
  return refusal != nullptr && refusal->reason_code == "Forbidden" &&
         refusal->message.find("exceeded quota") != std::string::npos;
}

bool exists_already(const Error& error) {
  return has_reason(error, "AlreadyExists");
}

bool is_fault_of_server(const Error& error) {
  constexpr int kFirstServerError = 500;
  const ApiRefusal* const refusal = refusal_of(error);
  return refusal != nullptr && refusal->status >= kFirstServerError;
}

/// Whether the object may have been created all the same.
bool is_unknown(const Error& error) {
  return error.code == ErrorCode::kTimeout || is_fault_of_server(error);
}

/// Before the next try. 409: two requests have changed one quota, or an object of the same name is
/// being deleted.
std::chrono::milliseconds pause_after(const Error& error) {
  const bool is_brief = error.code == ErrorCode::kConflict || error.code == ErrorCode::kTimeout;
  return is_brief ? kSoonAgain : kLaterAgain;
}

/// The first step of a release.
Error not_deleted_yet() {
  return {.code = ErrorCode::kUnavailable, .what = ""};
}

/// Whether the pod is to be created, and no request to do so is under way.
bool is_missing(const HeldPod& pod) {
  return pod.is_desired && !pod.is_created && pod.creation == nullptr && !pod.facts;
}

bool has_pods_without_node(const PodGang& gang) {
  return std::any_of(gang.pods.begin(), gang.pods.end(), [](const auto& named) {
    return !named.second.facts || named.second.facts->node.empty();
  });
}

}  // namespace

bool may_pass(const Error& error) {
  if (is_quota(error) || is_fault_of_server(error)) return true;
  // In a namespace that is being deleted, nothing can be created again: 403.
  return error.code == ErrorCode::kConflict || error.code == ErrorCode::kUnavailable ||
         error.code == ErrorCode::kTimeout || error.code == ErrorCode::kExhausted;
}

void GangObjects::create(const PodGangPointer& gang) {
  if (gang->is_releasing || gang->is_unsaved || gang->fault) return;
  if (auto why = hooks_.closed ? hooks_.closed() : std::nullopt) {
    gang->refusal = *std::move(why);
    create_later(gang, kLaterAgain);
    return hooks_.changed(gang);
  }
  if (!gang->uid.empty()) gang->refusal.reset();
  if (!gang->uid.empty() && gang->has_others) return create_pods(gang);
  // The server that created the owner may have created some of them.
  if (!gang->uid.empty()) return create_others(gang, true);
  if (hooks_.admit(gang)) return create_owner(gang);
  hooks_.changed(gang);
}

/// `faults`: of the earlier answers to the same creation.
bool GangObjects::is_tried_again(const Error& error, FaultsInRow& faults) const {
  if (!is_fault_of_server(error)) {
    faults.reset();
    return may_pass(error);
  }
  const auto now = std::chrono::steady_clock::now();
  if (faults) return now - *faults < pod_timeout_;
  faults = now;
  return true;
}

void GangObjects::create_later(const PodGangPointer& gang, std::chrono::milliseconds pause) {
  gang->retry = loop_.after(pause, [this, weak = std::weak_ptr(gang)] {
    if (const auto still = weak.lock()) create(still);
  });
}

// --- the owner

void GangObjects::create_owner(const PodGangPointer& gang) {
  if (!gang->calls.empty()) return;
  const Json object = owner_object(gang->job, site_, hooks_.brief_of(*gang));
  gang->calls.push_back(client_.create(kSecrets, site_.space, object,
                                       [this, weak = std::weak_ptr(gang)](Result<Json> created) {
                                         if (const auto still = weak.lock())
                                           owner_created(still, std::move(created));
                                       }));
}

void GangObjects::owner_created(const PodGangPointer& gang, Result<Json> created) {
  gang->calls.clear();
  if (gang->is_releasing) return released(gang, not_deleted_yet());
  if (created) {
    gang->uid = text_of(*created, "metadata", "uid");
    gang->refusal.reset();
    gang->faults.reset();
    gang->has_others = false;
    gangs_.save(gang);
    create_others(gang, false);
    return hooks_.changed(gang);
  }
  const Error& error = created.error();
  if (!is_tried_again(error, gang->faults)) {
    gang->fault = error;
    return hooks_.changed(gang);
  }
  gang->refusal = error;
  // An earlier request whose answer was lost, or an earlier server's: its uid is unknown, so it is
  // replaced. No pod was created with it.
  const bool is_ours = exists_already(error) || error.code == ErrorCode::kTimeout;
  if (is_ours) {
    gang->calls.push_back(client_.remove(
        {kSecrets, site_.space, gang_name(site_.owner, gang->gang)}, {.propagation = "Background"},
        [this, weak = std::weak_ptr(gang)](const Result<void>&) {
          const auto still = weak.lock();
          if (!still) return;
          still->calls.clear();
          if (still->is_releasing) return released(still, not_deleted_yet());
          create_later(still, kSoonAgain);
        }));
  } else {
    create_later(gang, pause_after(error));
  }
  hooks_.changed(gang);
}

// --- what it owns

void GangObjects::create_others(const PodGangPointer& gang, bool may_exist) {
  if (!gang->missing.empty()) return;
  const auto add = [&](const Resource& resource, Json object) {
    MissingObject& missing = gang->missing[std::string(resource.plural)];
    missing.resource = resource;
    missing.object = std::make_shared<const Json>(std::move(object));
    missing.may_exist = may_exist;
  };
  // The cluster makes and maintains several objects for each Service.
  if (!gang->job.is_single) add(kServices, service_object(gang->job, site_, gang->uid));
  add(kNetworkPolicies, network_policy_object(gang->job, site_, gang->uid));
  if (shares_artifacts(gang->job, site_)) {
    add(kPersistentVolumeClaims, artifacts_claim_object(gang->job, site_, gang->uid));
  }
  if (!gang->job.logins.empty()) add(kSecrets, registry_object(gang->job, site_, gang->uid));
  for (const auto& [plural, missing] : gang->missing) create_other(gang, plural);
}

void GangObjects::create_other(const PodGangPointer& gang, const std::string& plural) {
  MissingObject& missing = gang->missing.at(plural);
  missing.creation =
      client_.create(missing.resource, site_.space, *missing.object,
                     [this, weak = std::weak_ptr(gang), plural](Result<Json> created) {
                       const auto still = weak.lock();
                       if (still) other_created(still, plural, std::move(created));
                     });
}

void GangObjects::other_created(const PodGangPointer& gang, const std::string& plural,
                                Result<Json> created) {
  const auto found = gang->missing.find(plural);
  if (found == gang->missing.end() || gang->is_releasing) return;
  MissingObject& missing = found->second;
  // Otherwise the existing object belongs to an earlier owner, and is being deleted with it.
  const bool is_there = created || (exists_already(created.error()) && missing.may_exist);
  if (is_there) {
    gang->missing.erase(found);
    if (gang->missing.empty()) {
      gang->has_others = true;
      gangs_.shared().save_soon(gang);
      create_pods(gang);
    }
    return hooks_.changed(gang);
  }
  const Error error = std::move(created).error();
  if (!is_tried_again(error, missing.faults)) {
    gang->fault = error;
    return hooks_.changed(gang);
  }
  missing.refusal = error;
  missing.may_exist = missing.may_exist || is_unknown(error);
  missing.retry = loop_.after(pause_after(error), [this, weak = std::weak_ptr(gang), plural] {
    const auto still = weak.lock();
    if (still && still->missing.count(plural) > 0) create_other(still, plural);
  });
  hooks_.changed(gang);
}

// --- pods

void GangObjects::create_pods(const PodGangPointer& gang) {
  std::vector<std::string> missing;
  for (const auto& [task, pod] : gang->pods) {
    if (is_missing(pod)) missing.push_back(task);
  }
  for (const std::string& task : missing) create_pod(gang, task);
}

void GangObjects::create_pod(const PodGangPointer& gang, const std::string& task) {
  HeldPod& pod = gang->pods.at(task);
  auto object = pod_object(gang->job, pod.plan, site_, gang->uid);
  if (!object) {
    gang->fault = std::move(object).error();
    return hooks_.changed(gang);
  }
  pod.creation = client_.create(kPods, site_.space, *object,
                                [this, weak = std::weak_ptr(gang), task](Result<Json> created) {
                                  if (const auto still = weak.lock()) {
                                    pod_created(still, task, std::move(created));
                                  }
                                });
}

void GangObjects::pod_created(const PodGangPointer& gang, const std::string& task,
                              Result<Json> created) {
  const auto found = gang->pods.find(task);
  if (found == gang->pods.end() || gang->is_releasing) return;
  HeldPod& pod = found->second;
  pod.creation.reset();
  if (created) {
    pod.is_created = true;
    pod.refusal.reset();
    pod.faults.reset();
    if (!pod.facts) pod.facts = read_pod(*created);
    return hooks_.changed(gang);
  }
  const Error error = std::move(created).error();
  if (!is_tried_again(error, pod.faults)) {
    gang->fault = error;
    return hooks_.changed(gang);
  }
  // The pod may be this gang's, if the answer to an earlier request was lost: the watch shows it.
  pod.refusal = error;
  pod.retry = loop_.after(pause_after(error), [this, weak = std::weak_ptr(gang), task] {
    const auto still = weak.lock();
    if (still && !still->fault && is_missing(still->pods.at(task))) create_pod(still, task);
  });
  hooks_.changed(gang);
}

// --- deletion

void GangObjects::release(const PodGangPointer& gang) {
  if (std::exchange(gang->is_releasing, true)) return;
  gang->record.given_back = true;
  gang->retry.reset();
  gang->missing.clear();
  // Without this, muster-nodes would wait for the whole grace period of their pods.
  for (const auto& [name, task] : gang->tasks) {
    if (task->line != nullptr) task->line->send(node::Farewell{});
  }
  for (auto& [task, pod] : gang->pods) {
    pod.creation.reset();
    pod.retry.reset();
    pod.dial.reset();
    pod.handshake.reset();
    pod.dial_retry.reset();
    pod.check.reset();
  }
  gangs_.save(gang);
  // A deletion could overtake a creation that is under way, and the owner would stay for ever.
  const bool is_being_created = gang->uid.empty() && !gang->calls.empty();
  if (!is_being_created) released(gang, not_deleted_yet());
}

void GangObjects::released(const PodGangPointer& gang, const Result<void>& removed) {
  gang->calls.clear();
  if (removed) {
    gangs_.remove(gang);
    for (auto& then : std::exchange(gang->when_released, {})) loop_.post(std::move(then));
    return;
  }
  const bool is_first = removed.error().what.empty();
  if (!is_first) {
    base::log_warning("job " + gang->gang.job_id + ": " + removed.error().what + "; tried again");
  }
  const std::weak_ptr<PodGang> weak = gang;  // the table holds it
  gang->retry = loop_.after(is_first ? std::chrono::milliseconds(0) : kLaterAgain, [this, weak] {
    const auto still = weak.lock();
    if (!still) return;
    const bool is_queued = site_.queue == PodQueue::kKueue && has_pods_without_node(*still);
    is_queued ? finish_workload(still) : delete_owner(still);
  });
}

void GangObjects::delete_owner(const PodGangPointer& gang) {
  gang->calls.push_back(client_.remove({kSecrets, site_.space, gang_name(site_.owner, gang->gang)},
                                       {.propagation = "Background"},
                                       [this, weak = std::weak_ptr(gang)](const Result<void>& how) {
                                         if (const auto later = weak.lock()) released(later, how);
                                       }));
}

/// Kueue holds the pods of a group by finalisers until all have ended, and a pod that never had a
/// node never ends. Kueue lets go of them when their workload is finished.
void GangObjects::finish_workload(const PodGangPointer& gang) {
  const Json condition{{"type", "Finished"},
                       {"status", "True"},
                       {"reason", "Stopped"},
                       {"message", "Muster does not need it any more"},
                       {"lastTransitionTime", base::to_rfc3339(base::SystemClock().now(), 0)}};
  gang->calls.push_back(client_.patch(
      {kWorkloads, site_.space, gang_name(site_.owner, gang->gang)}, PatchType::kMerge,
      {{"status", {{"conditions", Json::array({condition})}}}},
      [this, weak = std::weak_ptr(gang)](const Result<Json>& patched) {
        const auto still = weak.lock();
        if (!still) return;
        const bool is_failure = !patched && patched.error().code != ErrorCode::kNotFound;
        if (is_failure) base::log_warning(patched.error().what);
        delete_owner(still);
      },
      "status"));
}

void GangObjects::remove_pod(const PodGangPointer& gang, const std::string& task,
                             const std::string& uid, std::chrono::seconds grace) {
  const auto found = gang->pods.find(task);
  if (found == gang->pods.end() || gang->is_releasing) return;
  const std::string name = pod_name(site_.owner, gang->gang, task);
  found->second.removal = client_.remove(
      {kPods, site_.space, name}, {.uid = uid, .grace = grace},
      [this, weak = std::weak_ptr(gang), task, uid, grace, name](const Result<void>& removed) {
        // A conflict: another pod has the name, so this one is gone.
        const bool is_done = removed || removed.error().code == ErrorCode::kConflict;
        if (is_done) return;
        base::log_warning("pod " + name + ": " + removed.error().what);
        const auto still = weak.lock();
        const TaskPointer held = still ? still->task(task) : nullptr;
        // A started task never gets another pod. Otherwise a later pod could have the name.
        const bool is_safe = held != nullptr && (!uid.empty() || still->seat_of(*held).started);
        if (!is_safe || still->is_releasing || !may_pass(removed.error())) return;
        still->pods.at(task).removal_retry =
            loop_.after(kLaterAgain, [this, weak, task, uid, grace] {
              if (const auto later = weak.lock()) remove_pod(later, task, uid, grace);
            });
      });
}

void GangObjects::remove_orphan(const std::string& name) {
  Orphan& orphan = orphans_[name];
  orphan.removal =
      client_.remove({kSecrets, site_.space, name}, {.propagation = "Background"},
                     [this, name](const Result<void>& removed) {
                       if (removed) return;
                       base::log_warning("secret " + name + ": " + removed.error().what);
                       if (!may_pass(removed.error())) return;
                       orphans_[name].retry = loop_.after(kLaterAgain, [this, name] {
                         if (gangs_.find_by_name(name) == nullptr) remove_orphan(name);
                       });
                     });
}

}  // namespace muster::engine::kubernetes
