#include "engine/kubernetes/pod_state.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text.h"
#include "engine/kubernetes/json_text.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using job::PodEnd;
using Json = nlohmann::json;
using Stage = job::KubernetesWaits::Stage;

namespace {

constexpr size_t kLongestWords = 1000;

/// One line, without control characters.
std::string pod_sentence(const std::string& text) {
  std::string line = base::as_utf8(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return base::shortened(base::trimmed(line), kLongestWords);
}

ContainerFacts read_container(const Json& statuses, std::string_view name) {
  ContainerFacts facts;
  if (!statuses.is_array()) return facts;
  for (const Json& status : statuses) {
    if (text_of(status, "name") != name) continue;
    const Json& state = member_of(status, "state");
    facts.waiting = text_of(state, "waiting", "reason");
    facts.waiting_text = pod_sentence(text_of(state, "waiting", "message"));
    facts.runs = state.is_object() && state.contains("running");
    const Json& ended = member_of(state, "terminated");
    facts.has_ended = ended.is_object();
    facts.code = static_cast<int>(integer_of(ended, "exitCode"));
    facts.signal = static_cast<int>(integer_of(ended, "signal"));
    facts.ended = text_of(ended, "reason");
    facts.ended_text = pod_sentence(text_of(ended, "message"));
    facts.image = text_of(status, "image");
    facts.image_id = text_of(status, "imageID");
  }
  return facts;
}

/// The job's own init containers run one after the other, after Muster's.
void read_init(const Json& pod, PodFacts& facts) {
  const Json& containers = member_of(pod, "spec", "initContainers");
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    const std::string name = text_of(container, "name");
    if (name == kInstallContainer) {
      facts.has_install = true;
      continue;
    }
    ContainerFacts its = read_container(member_of(pod, "status", "initContainerStatuses"), name);
    const bool is_sidecar = text_of(container, "restartPolicy") == "Always";
    const bool is_passed = is_sidecar ? its.runs : its.has_ended && its.code == 0;
    if (is_passed) continue;
    facts.init_name = name;
    if (its.image.empty()) its.image = text_of(container, "image");
    facts.init = std::move(its);
    return;
  }
}

void read_conditions(const Json& pod, PodFacts& facts) {
  const Json& conditions = member_of(pod, "status", "conditions");
  if (!conditions.is_array()) return;
  for (const Json& condition : conditions) {
    const std::string type = text_of(condition, "type");
    const bool holds = text_of(condition, "status") == "True";
    if (type == "PodScheduled" && !holds) {
      facts.unscheduled = text_of(condition, "reason");
      facts.unscheduled_text = pod_sentence(text_of(condition, "message"));
    } else if ((type == "DisruptionTarget" || type == "TerminationTarget") && holds) {
      // Kueue writes TerminationTarget before it deletes a pod.
      facts.disruption = text_of(condition, "reason");
      facts.disruption_text = pod_sentence(text_of(condition, "message"));
    }
  }
}

/// The kubelet reports a volume's image that it cannot get as if it were the container's.
void name_image_of_volume(const Json& pod, ContainerFacts& task) {
  const Json& volumes = member_of(pod, "spec", "volumes");
  if (!volumes.is_array()) return;
  for (const Json& volume : volumes) {
    const std::string image = text_of(volume, "image", "reference");
    const bool is_it = !image.empty() && task.waiting_text.find(image) != std::string::npos;
    if (is_it) task.image = image;
  }
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool waits_for_image(const ContainerFacts& container) {
  return is_one_of(container.waiting,
                   {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
                    "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"});
}

const ContainerFacts& container_behind(const PodFacts& pod) {
  const bool is_installed = !pod.has_install || (pod.install.has_ended && pod.install.code == 0);
  if (!is_installed) return pod.install;
  return pod.init_name.empty() ? pod.task : pod.init;
}

/// Kubernetes tries to pull an image for ever. The registry's message distinguishes a missing image
/// from a temporary failure.
bool is_missing_for_good(const ContainerFacts& container) {
  if (is_one_of(container.waiting, {"InvalidImageName", "ErrImageNeverPull"})) return true;
  if (!is_one_of(container.waiting, {"ErrImagePull", "ImagePullBackOff"})) return false;
  const auto mentions = [&](const char* words) {
    return container.waiting_text.find(words) != std::string::npos;
  };
  // Files on the node that containerd's garbage collection has removed during the pull: it uses the
  // same words for them.
  const bool is_of_node = mentions("extraction snapshot") || mentions("parent snapshot") ||
                          mentions("content digest") || mentions("failed to unpack") ||
                          mentions("failed to extract") || mentions(" lease ");
  if (is_of_node) return false;
  return mentions("not found") || mentions("manifest unknown") || mentions("does not exist") ||
         mentions("repository name not known") || mentions("no match for platform");
}

bool is_refused_by_registry(const ContainerFacts& container) {
  if (!is_one_of(container.waiting, {"ErrImagePull", "ImagePullBackOff"})) return false;
  const auto mentions = [&](const char* words) {
    return container.waiting_text.find(words) != std::string::npos;
  };
  return mentions("pull access denied") || mentions("unauthorized") ||
         mentions("authorization failed") || mentions("403 Forbidden") ||
         mentions("no basic auth credentials");
}

std::string in_brackets(const std::string& text, const std::string& word) {
  std::string words = text;
  if (!word.empty()) words += (words.empty() ? "" : " ") + ("(" + word + ")");
  return words;
}

Error image_error(ErrorCode code, const ContainerFacts& container, const std::string& task,
                  const std::string& node, const char* advice) {
  return {.code = code,
          .what = "node " + node + " cannot get image " + container.image + " of " + task + ": " +
                  in_brackets(container.waiting_text, container.waiting),
          .advice = advice};
}

std::optional<Error> image_fault(const PodFacts& pod, const std::string& task) {
  const ContainerFacts* container = nullptr;
  for (const ContainerFacts* const each : {&pod.task, &pod.init, &pod.install}) {
    if (waits_for_image(*each)) container = each;
  }
  if (container == nullptr) return std::nullopt;
  // The registry's refusal is often "not found, or access denied": the login may be missing.
  if (is_refused_by_registry(*container)) {
    return image_error(ErrorCode::kRefused, *container, task, pod.node,
                       "check the name, and give a login: --registry-username and "
                       "--registry-secret, or --kubernetes-pull-secret");
  }
  if (is_missing_for_good(*container)) {
    return image_error(ErrorCode::kNotFound, *container, task, pod.node,
                       "check the name and the tag of the image, and --image-pull-policy");
  }
  return std::nullopt;
}

/// The kubelet tries these again by itself: its caches or the container runtime are slow, or the
/// runtime restarts, or still has a container of that name from a try that took too long.
bool may_pass_by_itself(const ContainerFacts& container) {
  const auto mentions = [&](std::string_view words) {
    return container.waiting_text.find(words) != std::string::npos;
  };
  // A Secret that the cluster has just got is missing only for a moment.
  if (container.waiting == "CreateContainerConfigError" && mentions("not found")) return true;
  return mentions("timed out waiting") || mentions("deadline exceeded") ||
         mentions("failed to reserve container name") || mentions("error reserving ctr name") ||
         mentions("code = Unavailable");
}

std::optional<Error> container_fault(const PodFacts& pod, const std::string& task) {
  for (const ContainerFacts* const container : {&pod.install, &pod.init, &pod.task}) {
    if (!is_one_of(container->waiting, {"CreateContainerConfigError", "CreateContainerError",
                                        "RunContainerError", "CrashLoopBackOff"})) {
      continue;
    }
    if (may_pass_by_itself(*container)) continue;
    return Error{.code = ErrorCode::kInvalid,
                 .what = "node " + pod.node + " cannot start the container of " + task + ": " +
                         in_brackets(container->waiting_text, container->waiting)};
  }
  return std::nullopt;
}

PodEnd::Cause cause_of_disruption(std::string_view word) {
  if (word == "PreemptionByScheduler") return PodEnd::Cause::kPreempted;
  // Of Kueue: "WorkloadEvictedDueToPreempted".
  if (word.starts_with("WorkloadEvicted")) return PodEnd::Cause::kQueueEvicted;
  if (word == "DeletionByTaintManager") return PodEnd::Cause::kTainted;
  if (word == "EvictionByEvictionAPI") return PodEnd::Cause::kDrained;
  if (word == "DeletionByPodGC") return PodEnd::Cause::kNodeLost;
  return PodEnd::Cause::kEvicted;  // TerminationByKubelet
}

PodEnd::Cause cause_of_reason(std::string_view word) {
  if (word == "Evicted") return PodEnd::Cause::kEvicted;
  if (word == "Preempting" || word == "Preempted") return PodEnd::Cause::kPreempted;
  if (word == "NodeLost") return PodEnd::Cause::kNodeLost;
  if (word == "DeadlineExceeded") return PodEnd::Cause::kDeadline;
  if (is_one_of(word, {"Terminated", "NodeShutdown", "Shutdown"})) return PodEnd::Cause::kShutDown;
  const bool is_refused =
      is_one_of(word, {"UnexpectedAdmissionError", "NodeAffinity", "NodePorts",
                       "TopologyAffinityError", "PodFeatureUnsupported", "PodOSNotSupported"}) ||
      word.starts_with("OutOf");
  return is_refused ? PodEnd::Cause::kNotAdmitted : PodEnd::Cause::kEnded;
}

}  // namespace

PodFacts read_pod(const Json& pod) {
  PodFacts facts{.name = text_of(pod, "metadata", "name"),
                 .uid = text_of(pod, "metadata", "uid"),
                 .owner = "",
                 .hostname = text_of(pod, "spec", "hostname"),
                 .node = text_of(pod, "spec", "nodeName"),
                 .address = text_of(pod, "status", "podIP"),
                 .phase = text_of(pod, "status", "phase"),
                 .reason = text_of(pod, "status", "reason"),
                 .text = pod_sentence(text_of(pod, "status", "message")),
                 .is_being_deleted = !text_of(pod, "metadata", "deletionTimestamp").empty()};
  const Json& owners = member_of(pod, "metadata", "ownerReferences");
  if (owners.is_array() && !owners.empty()) facts.owner = text_of(owners.front(), "uid");
  read_conditions(pod, facts);
  facts.install =
      read_container(member_of(pod, "status", "initContainerStatuses"), kInstallContainer);
  facts.task = read_container(member_of(pod, "status", "containerStatuses"), kTaskContainer);
  read_init(pod, facts);
  name_image_of_volume(pod, facts.task);
  return facts;
}

std::optional<PodEvent> read_event(const Json& event) {
  if (text_of(event, "involvedObject", "kind") != "Pod") return std::nullopt;
  const std::string container = std::string("{") + kTaskContainer + "}";
  return PodEvent{.pod = text_of(event, "involvedObject", "name"),
                  .uid = text_of(event, "involvedObject", "uid"),
                  .word = text_of(event, "reason"),
                  .text = pod_sentence(text_of(event, "message")),
                  .is_warning = text_of(event, "type") == "Warning",
                  .is_task = text_of(event, "involvedObject", "fieldPath").find(container) !=
                             std::string::npos};
}

job::KubernetesWaits wait_of(const PodFacts& pod, const std::string& task,
                             const std::optional<PodEvent>& event) {
  job::KubernetesWaits waits{.stage = Stage::kConnecting,
                             .pod = pod.name,
                             .task = task,
                             .node = pod.node,
                             .image = "",
                             .container = "",
                             .word = "",
                             .text = ""};
  if (pod.node.empty()) {
    waits.stage = Stage::kUnschedulable;
    waits.word = pod.unscheduled;
    waits.text = pod.unscheduled_text;
    return waits;
  }
  if (pod.task.runs) return waits;
  const ContainerFacts& container = container_behind(pod);
  if (waits_for_image(container)) {
    waits.stage = Stage::kImage;
    waits.image = container.image;
    waits.word = container.waiting;
    waits.text = container.waiting_text;
    return waits;
  }
  if (&container == &pod.init && container.runs) {
    waits.stage = Stage::kInitContainer;
    waits.container = pod.init_name;
    return waits;
  }
  waits.stage = container.has_ended || container.runs ? Stage::kStarting : Stage::kCreating;
  if (event && event->is_warning) {
    waits.word = event->word;
    waits.text = event->text;
  } else if (container.waiting != "ContainerCreating" && container.waiting != "PodInitializing") {
    waits.word = container.waiting;
    waits.text = container.waiting_text;
  }
  return waits;
}

bool is_behind(const job::KubernetesWaits& one, const job::KubernetesWaits& other) {
  // A pod whose image does not arrive takes precedence over one that is only being prepared.
  const auto rank = [](const job::KubernetesWaits& waits) {
    switch (waits.stage) {
      case Stage::kAway:
        return 0;
      case Stage::kToBeCreated:
        return waits.text.empty() ? 4 : 1;
      case Stage::kUnschedulable:
        return waits.text.empty() ? 5 : 2;
      case Stage::kImage:
        return 3;
      case Stage::kCreating:
        return waits.text.empty() ? 6 : 4;
      case Stage::kInitContainer:
        return 5;
      case Stage::kStarting:
        return 7;
      case Stage::kConnecting:
        break;
    }
    return 8;
  };
  return rank(one) < rank(other);
}

std::optional<Error> hopeless(const PodFacts& pod, const std::string& task) {
  if (auto fault = image_fault(pod, task)) return fault;
  if (auto fault = container_fault(pod, task)) return fault;
  if (pod.is_being_deleted || !pod.disruption.empty()) {
    const job::ExitStatus end = end_of_pod(pod, false);
    return Error{.code = ErrorCode::kUnavailable, .what = task + " " + job::explain(end)};
  }
  if (!pod.is_over()) return std::nullopt;
  if (pod.install.has_ended && pod.install.code != 0) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "Muster's programs could not be put into the pod of " + task + ": " +
                         in_brackets(pod.install.ended_text, pod.install.ended)};
  }
  if (pod.init.has_ended) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "init container " + pod.init_name + " of " + task + " ended with code " +
                         std::to_string(pod.init.code) + ": " +
                         in_brackets(pod.init.ended_text, pod.init.ended)};
  }
  if (pod.task.has_ended) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "the pod of " + task + " ended before its muster-node answered: " +
                         in_brackets(pod.task.ended_text, pod.task.ended)};
  }
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the pod of " + task + " failed: " + in_brackets(pod.text, pod.reason)};
}

job::ExitStatus end_of_pod(const PodFacts& pod, bool is_gone) {
  job::ExitStatus status;
  PodEnd& end = status.pod.emplace();
  end.pod = pod.name;
  end.node = pod.node;
  if (!pod.disruption.empty()) {
    end.cause = cause_of_disruption(pod.disruption);
    end.word = pod.disruption;
    end.text = pod.disruption_text;
    status.lost = true;
    return status;
  }
  if (pod.task.has_ended && pod.task.ended == "OOMKilled") {
    status.signal = SIGKILL;
    status.out_of_memory = true;
    end.word = pod.task.ended;
    return status;
  }
  status.lost = true;
  if (!pod.reason.empty()) {
    end.cause = cause_of_reason(pod.reason);
    end.word = pod.reason;
    end.text = pod.text;
    return status;
  }
  const bool is_deleted = pod.is_being_deleted || (is_gone && !pod.is_over());
  if (is_deleted) {
    end.cause = PodEnd::Cause::kDeleted;
    return status;
  }
  end.cause = PodEnd::Cause::kEnded;
  end.word = pod.task.ended;
  end.text = pod.task.ended_text;
  return status;
}

}  // namespace muster::engine::kubernetes
