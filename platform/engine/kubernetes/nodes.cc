#include "engine/kubernetes/nodes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "engine/kubernetes/json_text.h"
#include "engine/kubernetes/pod.h"
#include "job/kubernetes.h"
#include "job/quantity.h"

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

namespace {

int64_t cpu_in(const Json& amounts) {
  return job::milli_of_quantity(text_of(amounts, "cpu")).value_or(0);
}

int64_t bytes_in(const Json& amounts, const char* name) {
  return job::whole_of_quantity(text_of(amounts, name)).value_or(0);
}

/// Extended resources have a domain: "nvidia.com/gpu".
void add_devices(const Json& amounts, std::map<std::string, int64_t>& devices) {
  if (!amounts.is_object()) return;
  for (const auto& [name, value] : amounts.items()) {
    if (name.find('/') == std::string::npos || !value.is_string()) continue;
    const auto count = job::whole_of_quantity(value.get<std::string>());
    if (count) devices[name] += *count;
  }
}

ClusterAmounts amounts_in(const Json& amounts) {
  ClusterAmounts read{.cpu_milli = cpu_in(amounts), .memory_bytes = bytes_in(amounts, "memory")};
  add_devices(amounts, read.devices);
  return read;
}

void raise_to(const ClusterAmounts& least, ClusterAmounts& amounts) {
  amounts.cpu_milli = std::max(amounts.cpu_milli, least.cpu_milli);
  amounts.memory_bytes = std::max(amounts.memory_bytes, least.memory_bytes);
  for (const auto& [name, count] : least.devices) {
    amounts.devices[name] = std::max(amounts.devices[name], count);
  }
}

bool is_over(const Json& pod) {
  const std::string phase = text_of(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}

/// "NVIDIA-A100-SXM4-80GB", as the discovery of the vendors' operators labels nodes.
std::string labelled_gpu_model(const Json& labels, const std::string& resource) {
  const std::string vendor = resource.substr(0, resource.find('/'));
  for (const char* const name : {"/gpu.product", "/gpu.product-name"}) {
    std::string model = text_of(labels, (vendor + name).c_str());
    if (!model.empty()) return model;
  }
  return "";
}

int64_t gpu_memory_of(const Json& labels, const std::string& resource) {
  constexpr int64_t kMebi = 1 << 20;
  const std::string vendor = resource.substr(0, resource.find('/'));
  const std::string text = text_of(labels, (vendor + "/gpu.memory").c_str());
  const auto mebibytes = job::whole_of_quantity(text);
  return mebibytes && *mebibytes > 0 && *mebibytes < (int64_t{1} << 40) ? *mebibytes * kMebi : 0;
}

/// Taints that repeat the state of the node.
bool is_of_state(std::string_view key) {
  constexpr std::array<std::string_view, 3> kStates{"node.kubernetes.io/unschedulable",
                                                    "node.kubernetes.io/not-ready",
                                                    "node.kubernetes.io/unreachable"};
  return std::find(kStates.begin(), kStates.end(), key) != kStates.end();
}

std::vector<std::string> taints_of(const Json& node, const std::vector<std::string>& tolerations) {
  std::vector<std::string> taints;
  const Json& all = member_of(node, "spec", "taints");
  if (!all.is_array()) return taints;
  for (const Json& each : all) {
    const std::string effect = text_of(each, "effect");
    const std::string key = text_of(each, "key");
    if (effect == "PreferNoSchedule" || is_of_state(key)) continue;
    const std::string value = text_of(each, "value");
    const std::string taint = key + (value.empty() ? "" : "=" + value) + ":" + effect;
    const bool is_tolerated =
        std::any_of(tolerations.begin(), tolerations.end(),
                    [&](const std::string& one) { return job::tolerates(one, taint); });
    if (!is_tolerated) taints.push_back(taint);
  }
  std::sort(taints.begin(), taints.end());
  return taints;
}

void note_readiness(const Json& node, Node& read) {
  const Json& conditions = member_of(node, "status", "conditions");
  if (conditions.is_array()) {
    for (const Json& condition : conditions) {
      if (text_of(condition, "type") != "Ready") continue;
      if (text_of(condition, "status") == "True") return;
      read.labels[kSilentSince] = text_of(condition, "lastTransitionTime");
      return;
    }
  }
  // Its kubelet has never reported.
  read.labels[kSilentSince] = text_of(node, "metadata", "creationTimestamp");
}

std::string address_of(const Json& node) {
  const Json& addresses = member_of(node, "status", "addresses");
  if (!addresses.is_array()) return "";
  for (const Json& address : addresses) {
    if (text_of(address, "type") == "InternalIP") return text_of(address, "address");
  }
  return "";
}

/// Whether `text` is `prefix` and a version of at least `major`.`minor`.
bool is_at_least(std::string_view text, std::string_view prefix, int major, int minor) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  const size_t dot = std::min(text.find('.'), text.size());
  const size_t end = std::min(text.find_first_not_of("0123456789", dot + 1), text.size());
  if (dot >= end) return false;
  const auto one = base::number_of<int>(std::string(text.substr(0, dot)));
  const auto two = base::number_of<int>(std::string(text.substr(dot + 1, end - dot - 1)));
  return one && two && (*one > major || (*one == major && *two >= minor));
}

/// Not CRI-O: it may mount the volumes without the right to run programs from them.
bool can_mount_images(const Json& node) {
  const std::string kubelet = text_of(node, "status", "nodeInfo", "kubeletVersion");
  const std::string runtime = text_of(node, "status", "nodeInfo", "containerRuntimeVersion");
  return is_at_least(kubelet, "v", 1, 35) && is_at_least(runtime, "containerd://", 2, 1);
}

int as_count(int64_t number) {
  return static_cast<int>(std::clamp<int64_t>(number, 0, std::numeric_limits<int>::max()));
}

/// The GPU resource that the node has; the model that the configuration gives it.
std::pair<std::string, std::string> gpu_resource_on(
    const ClusterAmounts& amounts, const std::map<std::string, std::string>& resources) {
  for (const auto& [model, resource] : resources) {
    const auto found = amounts.devices.find(resource);
    if (found != amounts.devices.end() && found->second > 0) return {resource, model};
  }
  return {};
}

}  // namespace

ClusterAmounts& ClusterAmounts::operator+=(const ClusterAmounts& other) {
  cpu_milli += other.cpu_milli;
  memory_bytes += other.memory_bytes;
  pods += other.pods;
  for (const auto& [name, count] : other.devices) devices[name] += count;
  return *this;
}

ClusterAmounts& ClusterAmounts::operator-=(const ClusterAmounts& other) {
  cpu_milli -= other.cpu_milli;
  memory_bytes -= other.memory_bytes;
  pods -= other.pods;
  for (const auto& [name, count] : other.devices) {
    devices[name] -= count;
    if (devices[name] == 0) devices.erase(name);
  }
  return *this;
}

/// Init containers run one after the other, before the others: the largest counts, with the sidecars
/// (restartPolicy Always) that start before it. Sidecars count as containers, too. CPU and memory of
/// the pod as a whole replace those of its containers.
ClusterAmounts requests_of_pod(const Json& pod) {
  if (is_over(pod)) return {};
  ClusterAmounts sum;
  ClusterAmounts sidecars;
  ClusterAmounts first;
  const Json& containers = member_of(pod, "spec", "containers");
  if (containers.is_array()) {
    for (const Json& one : containers) sum += amounts_in(member_of(one, "resources", "requests"));
  }
  const Json& init = member_of(pod, "spec", "initContainers");
  if (init.is_array()) {
    for (const Json& one : init) {
      const ClusterAmounts own = amounts_in(member_of(one, "resources", "requests"));
      ClusterAmounts with_sidecars = sidecars;
      with_sidecars += own;
      raise_to(with_sidecars, first);
      if (text_of(one, "restartPolicy") == "Always") sidecars = with_sidecars;
    }
  }
  sum += sidecars;
  raise_to(first, sum);
  const Json& whole = member_of(pod, "spec", "resources", "requests");
  if (!text_of(whole, "cpu").empty()) sum.cpu_milli = cpu_in(whole);
  if (!text_of(whole, "memory").empty()) sum.memory_bytes = bytes_in(whole, "memory");
  sum += amounts_in(member_of(pod, "spec", "overhead"));
  sum.pods = 1;
  return sum;
}

Node NodeBook::read(const Json& node, std::string& gpu_resource) const {
  const ClusterAmounts amounts = amounts_in(member_of(node, "status", "allocatable"));
  const Json& labels = member_of(node, "metadata", "labels");
  Node read{.name = text_of(node, "metadata", "name"),
            .task_slots = as_count(bytes_in(member_of(node, "status", "allocatable"), "pods")),
            .anonymous_gpus = true,
            .cpu_milli = amounts.cpu_milli,
            .memory_bytes = amounts.memory_bytes,
            .address = address_of(node)};
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) {
      if (value.is_string()) read.labels[key] = value.get<std::string>();
    }
  }
  const auto labelled = [&](const std::string& key) {
    const auto found = read.labels.find(key);
    return found == read.labels.end() ? std::string() : found->second;
  };
  if (std::string pool = labelled(options_.pool_label); !pool.empty()) read.pool = std::move(pool);
  for (const auto& [level, label] : options_.topology) {
    if (std::string domain = labelled(label); !domain.empty()) read.topology[level] = domain;
  }
  auto [resource, model] = gpu_resource_on(amounts, options_.gpu_resources);
  if (!resource.empty()) {
    read.gpus = as_count(amounts.devices.at(resource));
    read.gpu_model = model.empty() ? labelled_gpu_model(labels, resource) : model;
    read.gpu_memory_bytes = gpu_memory_of(labels, resource);
  }
  gpu_resource = resource;
  read.taints = taints_of(node, options_.tolerations);
  note_readiness(node, read);
  if (flag_of(node, "spec", "unschedulable")) read.labels[kClosedBy] = "Kubernetes (cordoned)";
  return read;
}

bool NodeBook::set_node(const Json& node) {
  KnownNode known;
  known.node = read(node, known.gpu_resource);
  known.mounts_images = can_mount_images(node);
  const auto others = others_.find(known.node.name);
  if (others != others_.end()) known.others = others->second;
  const auto [place, is_new] = nodes_.try_emplace(known.node.name);
  if (!is_new && place->second == known) return false;
  place->second = std::move(known);
  return true;
}

bool NodeBook::remove_node(const std::string& name) {
  return nodes_.erase(name) > 0;
}

bool NodeBook::mounts_images(const std::string& name) const {
  if (name.empty()) {
    return !nodes_.empty() && std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
      return node.second.mounts_images;
    });
  }
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.mounts_images;
}

std::string NodeBook::gpu_model_of(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? "" : found->second.node.gpu_model;
}

bool NodeBook::set_pod(const Json& pod) {
  const std::string uid = text_of(pod, "metadata", "uid");
  const std::string node = text_of(pod, "spec", "nodeName");
  const bool is_ours = text_of(pod, "metadata", "labels", kOwnerKey) == options_.owner &&
                       text_of(pod, "metadata", "namespace") == options_.space;
  if (is_ours || uid.empty()) return false;
  ClusterAmounts requests = node.empty() ? ClusterAmounts{} : requests_of_pod(pod);
  const auto known = pods_.find(uid);
  const bool is_same = known == pods_.end()
                           ? requests == ClusterAmounts{}
                           : known->second.node == node && known->second.requests == requests;
  if (is_same) return false;
  remove_pod(uid);
  if (requests == ClusterAmounts{}) return true;
  others_[node] += requests;
  if (const auto there = nodes_.find(node); there != nodes_.end()) {
    there->second.others = others_[node];
  }
  pods_[uid] = {.node = node, .requests = std::move(requests)};
  return true;
}

bool NodeBook::remove_pod(const std::string& uid) {
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return false;
  const std::string node = known->second.node;
  others_[node] -= known->second.requests;
  if (const auto there = nodes_.find(node); there != nodes_.end()) {
    there->second.others = others_[node];
  }
  if (others_[node] == ClusterAmounts{}) others_.erase(node);
  pods_.erase(known);
  return true;
}

std::vector<Node> NodeBook::nodes() const {
  std::vector<Node> all;
  for (const auto& [name, known] : nodes_) {
    Node node = known.node;
    node.cpu_milli = std::max<int64_t>(0, node.cpu_milli - known.others.cpu_milli);
    node.memory_bytes = std::max<int64_t>(0, node.memory_bytes - known.others.memory_bytes);
    node.task_slots = as_count(node.task_slots - known.others.pods);
    if (node.task_slots == 0) {  // which would mean that there is no bound
      node.task_slots = 1;
      node.labels.emplace(kClosedBy, "Kubernetes (it has no room for another pod)");
    }
    const auto gpus = known.others.devices.find(known.gpu_resource);
    if (gpus != known.others.devices.end()) node.gpus = as_count(node.gpus - gpus->second);
    all.push_back(std::move(node));
  }
  return all;
}

}  // namespace muster::engine::kubernetes
