#include "dialects/kubernetes/pod.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "dialects/kubernetes/program.h"
#include "job/container.h"
#include "job/quantity.h"
#include "job/validate.h"

namespace muster::dialects::kubernetes {

namespace {

// --- environment

bool is_variable_of_the_shell(std::string_view name) {
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

using Labels = std::map<std::string, std::string>;

/// The name of the key in "metadata.labels['KEY']"; nothing if `field` is no such path.
std::optional<std::string> key_in(std::string_view field, std::string_view map) {
  const std::string begin = std::string(map) + "['";
  if (!field.starts_with(begin) || !field.ends_with("']")) return std::nullopt;
  field.remove_prefix(begin.size());
  field.remove_suffix(2);
  return std::string(field);
}

Expression of_variable(std::string name) {
  return {{.is_variable = true, .text = std::move(name)}};
}

Expression of_text(std::string text) {
  return {{.is_variable = false, .text = std::move(text)}};
}

/// Labels and annotations that controllers add to their pods, as variables of Muster's tasks.
std::optional<Expression> value_of_controller(const std::string& key) {
  static const std::map<std::string, std::string> kVariables{
      {"batch.kubernetes.io/job-completion-index", "JOB_COMPLETION_INDEX"},
      {"batch.kubernetes.io/job-name", "MUSTER_JOB"},
      {"job-name", "MUSTER_JOB"},
      {"training.kubeflow.org/job-name", "MUSTER_JOB"},
      {"training.kubeflow.org/replica-index", "POD_INDEX"},
      {"jobset.sigs.k8s.io/jobset-name", "MUSTER_JOB"},
  };
  const auto found = kVariables.find(key);
  if (found == kVariables.end()) return std::nullopt;
  return of_variable(found->second);
}

/// The name of a task's host, which is the name of its pod where pods have their own host names.
Expression host_name() {
  return {{.is_variable = true, .text = "MUSTER_JOB"},
          {.is_variable = false, .text = "-"},
          {.is_variable = true, .text = "MUSTER_TASK"}};
}

std::optional<Expression> value_of_field(const Node& node, const Labels& labels) {
  Map map(node);
  map.skip({"apiVersion"});
  const auto path = map.require("fieldPath");
  map.end();
  const auto field = path ? path->text() : std::nullopt;
  if (!field) return std::nullopt;
  for (const char* const where : {"metadata.labels", "metadata.annotations"}) {
    const auto key = key_in(*field, where);
    if (!key) continue;
    if (auto value = value_of_controller(*key)) return value;
    const auto label = labels.find(*key);
    return of_text(label == labels.end() ? "" : label->second);
  }
  if (*field == "metadata.name") return host_name();
  if (*field == "metadata.namespace") return of_variable("MUSTER_PROJECT");
  if (*field == "metadata.uid") return of_variable("POD_UUID");
  if (*field == "spec.nodeName") return of_variable("NODE_NAME");
  if (*field == "spec.serviceAccountName") return of_text("default");
  if (*field == "status.podIP") {
    path->warning("is the task's host name, which resolves to its address");
    return host_name();
  }
  path->fault("'" + *field + "' has no counterpart in Muster");
  return std::nullopt;
}

std::optional<Expression> value_of_resource(const Node& node, const Pod& pod) {
  Map map(node);
  map.skip({"containerName"});
  const auto resource = map.require("resource");
  const auto divisor_text = map.text("divisor");
  map.end();
  const auto name = resource ? resource->text() : std::nullopt;
  if (!name) return std::nullopt;
  const auto divisor = job::milli_of_quantity(divisor_text.value_or("1")).value_or(0);
  int64_t milli = 0;
  if (name->ends_with(".cpu")) milli = pod.resources.cpu_milli;
  const bool is_memory = name->ends_with(".memory");
  if (is_memory) milli = pod.resources.memory_bytes;
  if (milli == 0) {
    resource->fault("'" + *name + "' is not known: the container has no such claim");
    return std::nullopt;
  }
  // Both are rounded up, as the kubelet does.
  const int64_t unit = std::max<int64_t>(is_memory ? divisor / 1000 : divisor, 1);
  return of_text(std::to_string((milli - 1) / unit + 1));
}

struct Reference {
  std::string name;
  std::string key;
  bool optional = false;
};

std::optional<Reference> read_reference(const Node& node) {
  Map map(node);
  const auto name = map.require("name");
  const auto key = map.require("key");
  const bool optional = map.flag("optional").value_or(false);
  map.end();
  const auto name_text = name ? name->text() : std::nullopt;
  const auto key_text = key ? key->text() : std::nullopt;
  if (!name_text || !key_text) return std::nullopt;
  return Reference{.name = *name_text, .key = *key_text, .optional = optional};
}

constexpr const char* kAddTheMap = "; add the ConfigMap to the file, or replace it by its value";

/// Nothing: no value is set, or a fault was added.
std::optional<Expression> value_of_config(const Node& node, const ConfigMaps& maps) {
  const auto reference = read_reference(node);
  if (!reference) return std::nullopt;
  const auto map = maps.find(reference->name);
  if (map != maps.end()) {
    const auto value = map->second.find(reference->key);
    if (value != map->second.end()) return of_text(value->second);
  }
  const std::string what =
      "key '" + reference->key + "' of ConfigMap '" + reference->name + "' is not in this file";
  if (reference->optional) {
    node.warning(what + "; the variable is not set");
  } else {
    node.fault(what + kAddTheMap);
  }
  return std::nullopt;
}

class EnvironmentReading {
 public:
  EnvironmentReading(const PodContext& context, const Labels& labels, Pod& pod)
      : context_(context), labels_(labels), pod_(pod) {}

  void read(const Node& entry) {
    Map map(entry);
    const auto name_node = map.require("name");
    const auto value = map.take("value");
    const auto source = map.take("valueFrom");
    map.end();
    const auto name = name_node ? name_node->text() : std::nullopt;
    if (!name) return;
    if (!is_variable_of_the_shell(*name)) {
      return name_node->fault("'" + *name +
                              "' is not a variable name; use letters, digits and '_'");
    }
    if (source) return read_source(*name, entry, *source);
    const auto text = value ? value->text() : std::optional<std::string>("");
    if (!text) return;
    auto expanded_text = expanded(*text);
    if (!expanded_text) return entry.fault("is longer than 256 KiB with its variables");
    set({.name = *name, .value = *std::move(expanded_text), .secret = "", .place = entry.place()},
        entry);
  }

  void read_from(const Node& entry) {
    Map map(entry);
    const auto config = map.take("configMapRef");
    const std::string prefix = map.text("prefix").value_or("");
    map.refuse("secretRef",
               ": the names of its keys are not known; name each key under env, with secretKeyRef");
    map.end();
    if (!config) return;
    Map reference(*config);
    const std::string name = reference.text("name").value_or("");
    const bool optional = reference.flag("optional").value_or(false);
    reference.end();
    const auto found = context_.config_maps.find(name);
    if (found == context_.config_maps.end()) {
      const std::string what = "ConfigMap '" + name + "' is not in this file";
      if (optional) return config->warning(what + "; its variables are not set");
      return config->fault(what + kAddTheMap);
    }
    for (const auto& [key, text] : found->second) {
      const std::string variable = prefix + key;
      // As the kubelet does, which reports such keys as an event.
      if (!is_variable_of_the_shell(variable)) continue;
      set({.name = variable, .value = of_text(text), .secret = "", .place = entry.place()}, entry);
    }
  }

 private:
  std::optional<Expression> expanded(const std::string& text) const {
    return expand(text, [&](const std::string& name) -> std::optional<Expression> {
      for (const Variable& one : pod_.environment) {
        if (one.name != name) continue;
        return one.secret.empty() ? one.value : of_variable(name);
      }
      return std::nullopt;
    });
  }

  void set(Variable variable, const Node& entry) {
    const size_t before = total_;
    total_ += variable.name.size() + size_of(variable.value);
    if (total_ > kMostExpanded) {
      if (before <= kMostExpanded) entry.fault("makes the environment longer than 256 KiB");
      return;
    }
    auto& all = pod_.environment;
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Variable& one) { return one.name == variable.name; });
    if (same != all.end()) all.erase(same);
    all.push_back(std::move(variable));
  }

  void read_source(const std::string& name, const Node& entry, const Node& source) {
    Map map(source);
    Variable variable{.name = name, .value = {}, .secret = "", .place = entry.place()};
    std::optional<Expression> value;
    if (const auto field = map.take("fieldRef")) {
      value = value_of_field(*field, labels_);
    } else if (const auto resource = map.take("resourceFieldRef")) {
      value = value_of_resource(*resource, pod_);
    } else if (const auto config = map.take("configMapKeyRef")) {
      value = value_of_config(*config, context_.config_maps);
    } else if (const auto secret = map.take("secretKeyRef")) {
      const auto reference = read_reference(*secret);
      if (reference) variable.secret = secret_name(reference->name, reference->key);
    }
    map.end();
    if (value) variable.value = *std::move(value);
    if (!variable.value.empty() || !variable.secret.empty()) set(std::move(variable), entry);
  }

  const PodContext& context_;
  const Labels& labels_;
  Pod& pod_;
  size_t total_ = 0;  ///< of all names and values
};

}  // namespace

void read_environment(const Node& list, const PodContext& context, const Labels& labels, Pod& pod) {
  EnvironmentReading reading(context, labels, pod);
  for (const Node& entry : list.elements()) reading.read(entry);
}

std::string secret_name(const std::string& secret, const std::string& key) {
  std::string name = secret + "_" + key;
  for (char& c : name) {
    const bool is_of_a_name =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_of_a_name) c = '_';
  }
  if (!name.empty() && name.front() >= '0' && name.front() <= '9') name.insert(0, 1, '_');
  return name;
}

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
    claims.cpu_milli = *milli;
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
  map.refuse("claims", ": Muster knows no dynamic resource claims");
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
  spec.refuse("resourceClaims", ": Muster knows no dynamic resource claims");
  spec.refuse("schedulingGates", "; use suspend");
  spec.refuse("nodeName", ": Muster chooses the node; use scheduling.node_pools");
  spec.refuse("overhead", "");
  spec.refuse("ephemeralContainers", "");
  spec.skip({"automountServiceAccountToken", "serviceAccount", "dnsPolicy", "enableServiceLinks",
             "schedulerName", "hostname", "setHostnameAsFQDN", "preemptionPolicy", "priority",
             "shareProcessNamespace", "readinessGates", "os", "hostUsers"});
}

// --- containers

namespace {

std::vector<Word> words_of(const std::optional<Node>& list) {
  std::vector<Word> words;
  if (!list) return words;
  for (const Node& element : list->elements()) {
    if (auto text = element.text()) words.push_back({.text = *text, .place = element.place()});
  }
  return words;
}

/// Kubernetes pulls images without a tag, and those with the tag "latest", at each start.
job::PullPolicy usual_pull(const std::string& image) {
  const size_t name = image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1;
  const size_t digest = image.find('@', name);
  const size_t tag = image.find(':', name);
  if (digest != std::string::npos) return job::PullPolicy::kIfMissing;
  const bool is_latest = tag == std::string::npos || image.substr(tag + 1) == "latest";
  return is_latest ? job::PullPolicy::kAlways : job::PullPolicy::kIfMissing;
}

void read_pull_policy(Map& map, Pod& pod) {
  const auto policy = map.take("imagePullPolicy");
  pod.container.pull = usual_pull(pod.image);
  if (!policy) return;
  const auto word = policy->word({"Always", "IfNotPresent", "Never"});
  if (word == "Always") pod.container.pull = job::PullPolicy::kAlways;
  if (word == "IfNotPresent") pod.container.pull = job::PullPolicy::kIfMissing;
  if (word == "Never") pod.container.pull = job::PullPolicy::kNever;
}

void read_container(const Node& node, const VolumeSources& sources, const PodContext& context,
                    const Labels& labels, Pod& pod) {
  Map map(node);
  pod.container_place = node.place();
  if (const auto image = map.require("image")) pod.image = image->text().value_or("");
  pod.command = words_of(map.take("command"));
  pod.arguments = words_of(map.take("args"));
  read_pull_policy(map, pod);
  if (const auto resources = map.take("resources")) read_resources(*resources, context, pod);
  EnvironmentReading environment(context, labels, pod);
  if (const auto list = map.take("envFrom")) {
    for (const Node& entry : list->elements()) environment.read_from(entry);
  }
  if (const auto list = map.take("env")) read_environment(*list, context, labels, pod);
  if (const auto folder = map.take("workingDir")) {
    pod.folder = folder->text().value_or("");
    pod.folder_place = folder->place();
  }
  if (const auto own = map.take("securityContext")) read_security_context(*own, pod);
  if (const auto mounts = map.take("volumeMounts")) read_mounts(*mounts, sources, context, pod);
  map.warn("livenessProbe", "has no effect: a task that hangs is not restarted");
  map.refuse("lifecycle", ": no program runs before or after the task's own");
  map.refuse("volumeDevices", "");
  map.refuse("resizePolicy", "");
  map.skip({"name", "ports", "readinessProbe", "startupProbe", "terminationMessagePath",
            "terminationMessagePolicy", "stdin", "stdinOnce", "tty", "restartPolicy"});
  map.end();
}

std::string container_name(const Node& node) {
  for (const config::YamlEntry& entry : node.value().map) {
    if (entry.key == "name") return entry.value.scalar;
  }
  return "";
}

/// The container that runs the program; the others are faults.
std::optional<Node> main_container(Map& spec, const PodContext& context) {
  const auto list = spec.require("containers");
  if (!list) return std::nullopt;
  const std::vector<Node> containers = list->elements();
  if (containers.empty()) {
    list->fault("contains no container");
    return std::nullopt;
  }
  const auto named = std::find_if(containers.begin(), containers.end(), [&](const Node& one) {
    return !context.container.empty() && container_name(one) == context.container;
  });
  const Node& main = named == containers.end() ? containers.front() : *named;
  for (const Node& one : containers) {
    if (one.place().path == main.place().path) continue;
    one.fault("is a second container; a task of Muster has one program");
  }
  return main;
}

void refuse_init_containers(Map& spec) {
  const auto list = spec.take("initContainers");
  if (!list) return;
  for (const Node& container : list->elements()) {
    container.fault(
        "is an init container, which Muster does not run; do its work in the command or the image");
  }
}

}  // namespace

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
  refuse_init_containers(spec);
  if (const auto main = main_container(spec, context)) {
    read_container(*main, sources, context, labels, pod);
  }
  if (const auto whole = spec.take("resources")) read_resources(*whole, context, pod);
  spec.end();
  return pod;
}

}  // namespace muster::dialects::kubernetes
