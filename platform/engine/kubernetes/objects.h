// The objects of gangs in the cluster: creating them, one owner and then all others, and deleting
// them by their owner.
//
// A refusal that may pass (may_pass()) is tried again; the caller decides how long. But errors of the
// API server itself are given up when it has given no other answer for the timeout of pods: the
// cluster may have an admission webhook that fails until an operator repairs it. Pods are created
// when the API server has accepted the objects that they rely on: the Service, the NetworkPolicy,
// the claim and the logins. A gang's deletion is tried until it succeeds, also by the next server.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

class GangObjects {
 public:
  struct Hooks {
    /// Why no muster-node could connect to this server. While there is an error, nothing is created.
    /// Optional.
    std::function<std::optional<base::Error>()> closed = {};
    /// Whether the gang may have its pods now; if it must wait, create() is called again.
    std::function<bool(const PodGangPointer&)> admit;
    /// The text of the brief for the gang's muster-nodes.
    std::function<std::string(const PodGang&)> brief_of;
    /// Something of the gang was created or refused.
    std::function<void(const PodGangPointer&)> changed;
  };

  GangObjects(base::EventLoop& loop, ApiClient& client, const PodSite& site, PodGangTable& gangs,
              std::chrono::milliseconds pod_timeout, Hooks hooks)
      : loop_(loop),
        client_(client),
        site_(site),
        gangs_(gangs),
        pod_timeout_(pod_timeout),
        hooks_(std::move(hooks)) {}

  /// Creates what is missing, once the gang is admitted: the owner, the other objects, and the
  /// required pods. The gang's record must be on disk.
  void create(const PodGangPointer& gang);
  /// Deletes everything and forgets the gang, when the API server has agreed. Idempotent.
  void release(const PodGangPointer& gang);
  /// Deletes the pod of a task, and tries again after a failure that may pass. `uid`: only this pod,
  /// and no later one of the same name; empty: it is unknown.
  void remove_pod(const PodGangPointer& gang, const std::string& task, const std::string& uid,
                  std::chrono::seconds grace);
  /// Deletes the objects of a gang that has no record, and tries again after a failure that may pass.
  void remove_orphan(const std::string& name);

 private:
  void create_owner(const PodGangPointer& gang);
  void owner_created(const PodGangPointer& gang, base::Result<Json> created);
  void create_others(const PodGangPointer& gang, bool may_exist);
  void create_other(const PodGangPointer& gang, const std::string& plural);
  void other_created(const PodGangPointer& gang, const std::string& plural,
                     base::Result<Json> created);
  void create_pods(const PodGangPointer& gang);
  void create_pod(const PodGangPointer& gang, const std::string& task);
  void pod_created(const PodGangPointer& gang, const std::string& task, base::Result<Json> created);
  bool is_tried_again(const base::Error& error, FaultsInRow& faults) const;
  void create_later(const PodGangPointer& gang, std::chrono::milliseconds pause);
  void finish_workload(const PodGangPointer& gang);
  void delete_owner(const PodGangPointer& gang);
  void released(const PodGangPointer& gang, const base::Result<void>& removed);

  base::EventLoop& loop_;
  ApiClient& client_;
  const PodSite& site_;
  PodGangTable& gangs_;
  const std::chrono::milliseconds pod_timeout_;
  Hooks hooks_;
  /// The deletion of a gang that has no record.
  struct Orphan {
    Call removal;
    base::EventLoop::Interest retry;
  };
  std::map<std::string, Orphan> orphans_;  ///< by name
};

/// Whether the creation of an object may succeed later: after 403 of a quota, 409, 429 and 5xx, and
/// if no answer came.
bool may_pass(const base::Error& error);

}  // namespace muster::engine::kubernetes
