// The objects of gangs in the cluster: creating them, one owner and then all others, and deleting
// them by their owner.
//
// A refusal that may pass (a quota, an API server that is away, an object of the same name that is
// still being deleted) is tried again; the caller decides how long. Deletions are tried until they
// succeed, also by the next server.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/event_loop.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

class GangObjects {
 public:
  struct Hooks {
    /// Whether the gang may have its pods now; if it must wait, create() is called again.
    std::function<bool(const PodGangPointer&)> admit;
    /// The text of the brief for the gang's muster-nodes.
    std::function<std::string(const PodGang&)> brief_of;
    /// Something of the gang was created or refused.
    std::function<void(const PodGangPointer&)> changed;
  };

  GangObjects(base::EventLoop& loop, ApiClient& client, const PodSite& site, PodGangTable& gangs,
              Hooks hooks)
      : loop_(loop), client_(client), site_(site), gangs_(gangs), hooks_(std::move(hooks)) {}

  /// Creates what is missing, once the gang is admitted: the owner, the other objects, and the
  /// required pods. The gang's record must be on disk.
  void create(const PodGangPointer& gang);
  /// Deletes everything and forgets the gang, when the API server has agreed. Idempotent.
  void release(const PodGangPointer& gang);
  /// Deletes the pod of a task.
  void remove_pod(const PodGangPointer& gang, const std::string& task, std::chrono::seconds grace);
  /// Deletes the objects of a gang that has no record.
  void remove_orphan(const std::string& name);

 private:
  void create_owner(const PodGangPointer& gang);
  void owner_created(const PodGangPointer& gang, base::Result<Json> created);
  void create_others(const PodGangPointer& gang);
  void create_other(const PodGangPointer& gang, const Resource& resource, Json object);
  void create_pods(const PodGangPointer& gang);
  void create_pod(const PodGangPointer& gang, const std::string& task);
  void pod_created(const PodGangPointer& gang, const std::string& task, base::Result<Json> created);
  void create_later(const PodGangPointer& gang, std::chrono::milliseconds pause);
  void finish_workload(const PodGangPointer& gang);
  void delete_owner(const PodGangPointer& gang);
  void released(const PodGangPointer& gang, const base::Result<void>& removed);

  base::EventLoop& loop_;
  ApiClient& client_;
  const PodSite& site_;
  PodGangTable& gangs_;
  Hooks hooks_;
  std::vector<Call> orphans_;
};

/// Whether a refusal of the API server may pass by itself: it is busy or away, a quota is used up, an
/// object of the same name is still being deleted.
bool may_pass(const base::Error& error);

}  // namespace muster::engine::kubernetes
