#include "dialects/kubernetes/pod.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "job/container.h"
#include "job/quantity.h"
#include "job/validate.h"

namespace muster::dialects::kubernetes {

// --- resources

namespace {

struct Claims {
  std::optional<int64_t> cpu_milli;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> gpus;
  std::map<std::string, std::string> devices;  ///< of other kinds
};

constexpr const char* kNoSuchDevice = "' is not a resource that Muster counts";

void read_claim(const Node& node, const std::string& name, const PodContext& context,
                Claims& claims) {
  const auto text = node.text();
  if (!text) return;
  const auto milli = job::milli_of_quantity(*text);
  if (!milli) return node.fault("'" + *text + "' is not a quantity, as in 2, 500m or 16Gi");
  if (name == "cpu") {
    claims.cpu_milli = milli;
  } else if (name == "memory") {
    claims.memory_bytes = (*milli + 999) / 1000;
  } else if (name == "nvidia.com/gpu" || name == "amd.com/gpu") {
    constexpr int64_t kMostGpus = 1024;
    if (*milli % 1000 != 0 || *milli / 1000 > kMostGpus) {
      return node.fault("'" + *text + "' is not a number of whole GPUs up to 1024");
    }
    claims.gpus = *milli / 1000;
  } else if (*milli == 0) {
    return;
  } else if (name == "ephemeral-storage") {
    node.warning("has no effect: Muster does not limit the disk of one task");
  } else if (context.on_kubernetes && name.find('/') != std::string::npos) {
    claims.devices[name] = std::to_string(*milli / 1000);
  } else {
    node.fault("'" + name + kNoSuchDevice + "; it counts cpu, memory and nvidia.com/gpu");
  }
}

Claims read_claims(const std::optional<Node>& node, const PodContext& context) {
  Claims claims;
  if (!node) return claims;
  Map map(*node);
  for (const std::string& name : map.keys()) {
    if (const auto claim = map.take(name)) read_claim(*claim, name, context, claims);
  }
  return claims;
}

}  // namespace

void read_resources(const Node& node, const PodContext& context, Pod& pod) {
  Map map(node);
  // Muster has one number for both: the limit, which no task may exceed and which it may need.
  const Claims limits = read_claims(map.take("limits"), context);
  const auto requests_node = map.take("requests");
  const Claims requests = read_claims(requests_node, context);
  if (requests.memory_bytes && !limits.memory_bytes) {
    requests_node->warning("has memory without a limit: it is the limit here");
  }
  map.refuse("claims", ": Muster does not support dynamic resource claims");
  map.end();
  job::Resources& resources = pod.resources;
  const auto first = [](const std::optional<int64_t>& limit,
                        const std::optional<int64_t>& request) { return limit ? limit : request; };
  resources.cpu_milli = first(limits.cpu_milli, requests.cpu_milli).value_or(0);
  resources.memory_bytes = first(limits.memory_bytes, requests.memory_bytes).value_or(0);
  const auto gpus = first(limits.gpus, requests.gpus);
  resources.gpus = static_cast<int>(gpus.value_or(0));
  pod.kubernetes.devices = limits.devices.empty() ? requests.devices : limits.devices;
}

// --- rights

namespace {

void refuse_profile(Map& map, const char* key) {
  const auto profile = map.take(key);
  if (!profile) return;
  Map inner(*profile);
  const auto type = inner.text("type").value_or("");
  inner.skip({"localhostProfile"});
  inner.end();
  if (type != "RuntimeDefault") {
    profile->fault("'" + type + "' is not supported; Muster applies its own profile");
  }
}

}  // namespace

void read_security_context(const Node& node, Pod& pod) {
  constexpr int64_t kMostId = 4'294'967'294;
  Map map(node);
  const auto user = map.integer("runAsUser", 0, kMostId);
  const auto group = map.integer("runAsGroup", 0, kMostId);
  if (user) {
    pod.user = std::to_string(*user) + (group ? ":" + std::to_string(*group) : "");
  } else if (group) {
    node.fault("has a runAsGroup without a runAsUser; give both");
  }
  if (const auto root = map.flag("readOnlyRootFilesystem")) pod.container.writable_root = !*root;
  if (map.flag("allowPrivilegeEscalation").value_or(false)) pod.container.new_privileges = true;
  if (const auto capabilities = map.take("capabilities")) {
    Map inner(*capabilities);
    if (const auto add = inner.take("add")) {
      for (const std::string& name : job::capabilities_of(add->texts())) {
        auto& all = pod.container.capabilities;
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
      }
    }
    inner.skip({"drop"});  // few remain by default
    inner.end();
  }
  refuse_profile(map, "seccompProfile");
  refuse_profile(map, "appArmorProfile");
  map.refuse("privileged", ": a task never has the rights of its host");
  map.refuse("procMount", "");
  map.refuse("sysctls", "");
  map.refuse("windowsOptions", "");
  map.warn("seLinuxOptions", "has no effect");
  map.warn("supplementalGroups", "has no effect");
  // Volumes of Muster belong to the account of the task. A task that must not be root is checked by
  // the file's own runAsUser.
  map.skip({"fsGroup", "fsGroupChangePolicy", "runAsNonRoot", "supplementalGroupsPolicy",
            "seLinuxChangePolicy"});
  map.end();
}

// --- where pods run

namespace {

constexpr std::array kPoolLabels{"cloud.google.com/gke-nodepool",  "eks.amazonaws.com/nodegroup",
                                 "kubernetes.azure.com/agentpool", "agentpool",
                                 "node.kubernetes.io/node-pool",   "karpenter.sh/nodepool"};
constexpr std::array kModelLabels{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator",
                                  "accelerator"};

template <class Names>
bool is_one_of(const std::string& text, const Names& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

constexpr const char* kOnlyOnKubernetes = "applies only on a server that runs jobs on Kubernetes";

void read_node_selector(const Node& node, const PodContext& context, Pod& pod) {
  Map map(node);
  for (const std::string& label : map.keys()) {
    const auto entry = map.take(label);
    const auto value = entry ? entry->text() : std::nullopt;
    if (!value) continue;
    if (context.on_kubernetes) {
      pod.kubernetes.node_selector[label] = *value;
    } else if (is_one_of(label, kPoolLabels)) {
      pod.node_pools = {*value};
    } else if (is_one_of(label, kModelLabels)) {
      pod.gpu_models = {*value};
    } else if (label != "kubernetes.io/os" && label != "kubernetes.io/arch") {
      pod.kubernetes.node_selector[label] = *value;
      entry->warning(kOnlyOnKubernetes);
    }
  }
}

/// "KEY[=VALUE][:EFFECT]", or "*" for all taints.
void read_toleration(const Node& node, Pod& pod) {
  Map map(node);
  const std::string key = map.text("key").value_or("");
  const auto operation = map.take("operator");
  const std::string value = map.text("value").value_or("");
  const std::string effect = map.text("effect").value_or("");
  map.skip({"tolerationSeconds"});
  map.end();
  const auto word = operation ? operation->word({"Exists", "Equal"}) : std::nullopt;
  if (key.empty()) {
    // As in Kubernetes; word is empty if the operator is at fault.
    if (word == "Equal" || !operation) {
      node.fault("requires a key, or the operator Exists, which tolerates all taints");
    } else if (!effect.empty()) {
      node.warning("tolerates all taints, not only those with the effect " + effect +
                   ", because it has no key");
    }
    pod.kubernetes.tolerations.emplace_back("*");
    return;
  }
  const std::string with_value = word == "Exists" ? key : key + "=" + value;
  pod.kubernetes.tolerations.push_back(effect.empty() ? with_value : with_value + ":" + effect);
}

void read_affinity(const Node& node) {
  Map map(node);
  for (const char* const kind : {"nodeAffinity", "podAffinity", "podAntiAffinity"}) {
    const auto affinity = map.take(kind);
    if (!affinity) continue;
    Map inner(*affinity);
    inner.refuse("requiredDuringSchedulingIgnoredDuringExecution",
                 "; choose nodes with scheduling.node_pools, scheduling.gpu_models or "
                 "scheduling.required_topology");
    inner.warn("preferredDuringSchedulingIgnoredDuringExecution", "has no effect");
    inner.end();
  }
  map.end();
}

void warn_of_spread(const Node& node) {
  for (const Node& constraint : node.elements()) {
    constraint.warning("has no effect; scheduling.packing spreads or packs the tasks of a job");
  }
}

}  // namespace

void read_pod_fields(Map& spec, const PodContext& context, Pod& pod) {
  if (const auto selector = spec.take("nodeSelector")) read_node_selector(*selector, context, pod);
  if (const auto affinity = spec.take("affinity")) read_affinity(*affinity);
  if (const auto spread = spec.take("topologySpreadConstraints")) warn_of_spread(*spread);
  if (const auto rights = spec.take("securityContext")) read_security_context(*rights, pod);
  if (const auto seconds = spec.integer("terminationGracePeriodSeconds", 0, kMostSeconds)) {
    pod.grace_seconds = seconds;
  }
  if (const auto name = spec.take("priorityClassName")) {
    pod.priority_class = name->text().value_or("");
    pod.priority_place = name->place();
  }
  if (const auto name = spec.text("subdomain")) pod.subdomain = *name;
  if (const auto seconds = spec.integer("activeDeadlineSeconds", 1, kMostSeconds)) {
    pod.deadline_seconds = seconds;
  }
  if (const auto policy = spec.take("restartPolicy")) {
    pod.restart_policy = policy->word({"Always", "OnFailure", "Never"}).value_or("");
    pod.restart_place = policy->place();
  }
  if (const auto list = spec.take("tolerations")) {
    for (const Node& one : list->elements()) read_toleration(one, pod);
  }
  if (const auto name = spec.take("serviceAccountName")) {
    pod.kubernetes.service_account = name->text().value_or("");
    if (!context.on_kubernetes) name->warning(kOnlyOnKubernetes);
  }
  if (const auto name = spec.text("runtimeClassName")) pod.kubernetes.runtime_class = *name;
  if (const auto list = spec.take("imagePullSecrets")) {
    for (const Node& one : list->elements()) {
      Map map(one);
      if (const auto name = map.text("name")) pod.kubernetes.image_pull_secrets.push_back(*name);
      map.end();
    }
    if (!context.on_kubernetes) {
      list->warning(std::string(kOnlyOnKubernetes) +
                    "; elsewhere, set registry.username and registry.secret");
    }
  }
  spec.warn("hostNetwork", "has no effect: the tasks have the network of their job");
  spec.warn("dnsConfig", "has no effect: Muster resolves the names of the tasks");
  spec.refuse("hostPID", ": a task sees its own processes only");
  spec.refuse("hostIPC", ": a task has its own shared memory");
  spec.refuse("hostAliases", ": Muster writes the host names of tasks");
  spec.refuse("resourceClaims", ": Muster does not support dynamic resource claims");
  spec.refuse("schedulingGates", "; use suspend");
  spec.refuse("nodeName", ": Muster chooses the node; use scheduling.node_pools");
  spec.refuse("overhead", "");
  spec.refuse("ephemeralContainers", "");
  spec.skip({"automountServiceAccountToken", "serviceAccount", "dnsPolicy", "enableServiceLinks",
             "schedulerName", "hostname", "setHostnameAsFQDN", "preemptionPolicy", "priority",
             "shareProcessNamespace", "readinessGates", "os", "hostUsers"});
}

// --- the template

Pod read_pod_template(const Node& node, const PodContext& context) {
  Pod pod;
  Map outer(node);
  Labels labels;
  if (const auto metadata = outer.take("metadata")) {
    Map map(*metadata);
    for (const char* const key : {"labels", "annotations"}) {
      const auto pairs = map.take(key);
      if (!pairs) continue;
      for (auto& [name, value] : pairs->pairs()) {
        if (name.starts_with("kueue.x-k8s.io/podset-")) {
          pairs->warning("'" + name +
                         "' has no effect; scheduling.required_topology and preferred_topology "
                         "keep the tasks of a job together");
        }
        labels.emplace(name, value);
        if (!context.on_kubernetes) continue;
        auto& own =
            key == std::string_view("labels") ? pod.kubernetes.labels : pod.kubernetes.annotations;
        own[name] = value;
      }
    }
    map.skip({"name", "namespace", "creationTimestamp", "generateName", "finalizers"});
    map.end();
  }
  const auto spec_node = outer.require("spec");
  outer.end();
  // Programs of Kubernetes write where they like; only readOnlyRootFilesystem forbids it.
  pod.container.writable_root = true;
  if (!spec_node) return pod;
  pod.place = spec_node->place();
  pod.container_place = spec_node->place();
  Map spec(*spec_node);
  VolumeSources sources;
  if (const auto volumes = spec.take("volumes")) read_volume_sources(*volumes, sources);
  read_pod_fields(spec, context, pod);
  read_containers(spec, sources, context, labels, pod);
  if (const auto whole = spec.take("resources")) read_resources(*whole, context, pod);
  spec.end();
  return pod;
}

}  // namespace muster::dialects::kubernetes
