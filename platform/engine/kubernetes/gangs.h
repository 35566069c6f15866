// The gangs of a Kubernetes engine (lent/gang_table.h, with what only Kubernetes has): their objects
// in the cluster, and the pod of each task.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/pod.h"
#include "engine/kubernetes/pod_state.h"
#include "engine/lent/gang_table.h"

namespace muster::engine::kubernetes {

using lent::TaskPointer;

/// The time of the first of the API server's latest answers, if all since were errors of its own (5xx).
using FaultsInRow = std::optional<std::chrono::steady_clock::time_point>;

/// The pod of a task.
struct HeldPod {
  PodTask plan;             ///< empty after a restart, until the caller prepares it again
  bool is_desired = false;  ///< it is to exist
  bool is_created = false;  ///< the API server has accepted it
  Call creation;
  base::EventLoop::Interest retry;     ///< of the creation
  std::optional<base::Error> refusal;  ///< the API server's latest refusal, which may pass
  FaultsInRow faults;                  ///< of its creation
  std::optional<PodFacts> facts;       ///< as last watched
  std::string unneeded_uid;            ///< of an earlier pod of this name, which is being deleted
  bool is_gone = false;                ///< it was seen, and does not exist any more
  bool is_started = false;             ///< its container has been started, as an event reports
  std::optional<PodEvent> event;       ///< the warning that was reported last
  // The connection to its muster-node, if the server connects.
  Call dial;
  std::shared_ptr<void> handshake;
  base::EventLoop::Interest dial_retry;
  std::chrono::milliseconds dial_pause{0};
  Call removal;
  base::EventLoop::Interest removal_retry;
  base::EventLoop::Interest check;  ///< whether the task is lost
};

/// An object beside the owner and the pods that the API server has not accepted yet.
struct MissingObject {
  Resource resource = {};
  std::shared_ptr<const Json> object;
  bool may_exist = false;  ///< an earlier request may have created it
  Call creation;
  base::EventLoop::Interest retry;
  std::optional<base::Error> refusal;  ///< the API server's latest refusal, which may pass
  FaultsInRow faults;                  ///< of its creation
};

struct PodGang : lent::HeldGang {
  PodJob job;       ///< only the id after a restart, until the caller prepares pods again
  std::string uid;  ///< of the owner object; empty: not created yet
  /// All objects except pods are created; meaningless while `uid` is empty.
  bool has_others = true;
  std::map<std::string, MissingObject> missing = {};  ///< while has_others is false; by resource
  /// An earlier server has left a record that this server cannot read. The gang has no connection,
  /// and is_unsaved: a later server may be able to read the file.
  bool is_unreadable = false;
  bool has_descriptors = false;  ///< as DescriptorRoom has admitted it
  /// Reported with the allocation, if the cluster has chosen the nodes.
  std::vector<AllocatedPlace> places;
  std::string queue_text;               ///< why Kueue does not admit it
  bool is_releasing = false;            ///< its objects are being deleted
  std::map<std::string, HeldPod> pods;  ///< by task
  std::vector<Call> calls;              ///< of the owner, and of the release
  base::EventLoop::Interest retry;      ///< of the owner's creation, or of the release
  std::optional<base::Error> refusal;   ///< why the owner is not created yet
  FaultsInRow faults;                   ///< of the owner's creation
  std::optional<base::Error> fault;     ///< of any object, for good
  std::vector<std::function<void()>> when_released;

  PodGang(const GangId& name, lent::GangRecord its_record)
      : lent::HeldGang(name, std::move(its_record)) {
    job.gang = name;
    for (const lent::Seat& seat : record.seats) pods[seat.task];
  }

  bool has_started_tasks() const;
  /// A started task whose end was not reported.
  bool has_running_tasks() const;
  /// False for a leftover: the pod of a task that was to join the running gang and was given up, by
  /// this server or because an earlier server died. A queued gang needs all of its pods.
  bool needs_pod(const std::string& task_name) const;
  TaskPointer task(const std::string& name) const {
    const auto found = tasks.find(name);
    return found == tasks.end() ? nullptr : found->second;
  }
};

using PodGangPointer = std::shared_ptr<PodGang>;

/// All gangs of a Kubernetes engine's table are of this type.
inline PodGangPointer in_kubernetes(const lent::GangPointer& gang) {
  return std::static_pointer_cast<PodGang>(gang);
}

/// The record's file in the folder of an attempt.
inline constexpr const char* kPodRecordFile = "kubernetes";
lent::GangTable::Options pod_table_options(std::filesystem::path jobs);

class PodGangTable {
 public:
  PodGangTable(lent::GangTable& shared, std::string owner)
      : shared_(shared), owner_(std::move(owner)) {}

  /// Adds the gangs whose records an earlier server has left. An error: gangs may be missing, whose
  /// pods would be deleted as unknown.
  base::Result<void> load();
  /// A gang with this key and no task.
  PodGangPointer add(const GangId& gang, const rsh::Key& key);
  /// A seat for one more task; the task's existing one if it has it.
  HeldPod& add_task(const PodGangPointer& gang, const std::string& task);
  void remove(const PodGangPointer& gang);

  std::vector<PodGangPointer> all() const;
  PodGangPointer find(const GangId& gang) const { return in_kubernetes(shared_.find(gang)); }
  /// By the label kGangKey.
  PodGangPointer find_by_name(const std::string& name) const;
  /// By the name of one of its pods.
  PodGangPointer find_by_pod_name(std::string_view pod) const;

  void save(const PodGangPointer& gang) { shared_.save(gang); }
  lent::GangTable& shared() { return shared_; }

 private:
  PodGangPointer keep(const GangId& gang, lent::GangRecord record);

  lent::GangTable& shared_;
  std::string owner_;
  std::map<std::string, std::weak_ptr<PodGang>> by_name_;
};

}  // namespace muster::engine::kubernetes
