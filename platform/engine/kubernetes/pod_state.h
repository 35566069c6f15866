// What the API server reports of a pod of a task: why it does not run yet, whether it ever will, and
// how it has ended.
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "job/exit_status.h"
#include "job/fact.h"

namespace muster::engine::kubernetes {

/// A container that waits or has ended.
struct ContainerFacts {
  std::string waiting;       ///< "ContainerCreating", "ErrImagePull"; empty: it does not wait
  std::string waiting_text;  ///< Kubernetes' sentence
  bool runs = false;
  bool has_ended = false;
  int code = 0;
  int signal = 0;
  std::string ended;       ///< "OOMKilled", "Error", "Completed", "ContainerCannotRun"
  std::string ended_text;  ///< its last words, or Kubernetes' sentence
  std::string image;
  std::string image_id;

  bool operator==(const ContainerFacts&) const = default;
};

struct PodFacts {
  std::string name;
  std::string uid;
  std::string owner;  ///< uid of the object that owns it
  std::string hostname;
  std::string node;  ///< empty: not bound yet
  std::string address;
  std::string phase;   ///< "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string reason;  ///< of the pod: "Evicted"
  std::string text;    ///< Kubernetes' sentence
  bool is_being_deleted = false;
  std::string unscheduled;       ///< "Unschedulable", "SchedulingGated"; empty: it is scheduled
  std::string unscheduled_text;  ///< of the cluster's scheduler
  std::string disruption;        ///< reason of the condition DisruptionTarget; empty: none
  std::string disruption_text;
  bool has_install = false;  ///< an init container brings Muster's programs
  ContainerFacts install;
  /// The job's own init container or sidecar that has not started, or not ended well, so that the pod
  /// gets no further; empty: none.
  std::string init_name;
  ContainerFacts init;
  ContainerFacts task;

  bool is_over() const { return phase == "Succeeded" || phase == "Failed"; }
  bool operator==(const PodFacts&) const = default;
};

/// PodFacts::unscheduled of a pod that is held back before the scheduler sees it, as Kueue does.
inline constexpr const char* kGated = "SchedulingGated";

PodFacts read_pod(const nlohmann::json& pod);

/// The event of a pod that was reported last. After a list, events come in the order of their
/// names.
struct PodEvent {
  std::string pod;
  std::string uid;   ///< of the pod
  std::string word;  ///< "FailedMount"
  std::string text;
  bool is_warning = false;
  bool is_task = false;  ///< about the container of the task

  bool operator==(const PodEvent&) const = default;
};
/// nullopt: not of a pod.
std::optional<PodEvent> read_event(const nlohmann::json& event);

/// The reason why the muster-node in the pod of `task` does not answer yet. `event`: of the pod; it
/// counts if it is a warning.
job::KubernetesWaits wait_of(const PodFacts& pod, const std::string& task,
                             const std::optional<PodEvent>& event);
/// A stage that is farther behind comes first.
bool is_behind(const job::KubernetesWaits& one, const job::KubernetesWaits& other);

/// Why the pod will never run, for Engine::prepare() and start(); nullopt: it may.
///
/// kNotFound: no such image. kRefused: by the registry. kInvalid: the container cannot be made as
/// requested. kUnavailable: otherwise; another attempt may succeed.
std::optional<base::Error> hopeless(const PodFacts& pod, const std::string& task);

/// How a task has ended whose pod is over, or being deleted, without a report of its muster-node.
/// `is_gone`: the API server has the pod no longer.
job::ExitStatus end_of_pod(const PodFacts& pod, bool is_gone);

}  // namespace muster::engine::kubernetes
