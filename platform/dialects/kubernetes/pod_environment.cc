// The environment of a container: EnvVar and EnvFromSource.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "dialects/kubernetes/pod.h"
#include "dialects/kubernetes/program.h"
#include "job/container.h"
#include "job/quantity.h"
#include "job/validate.h"

namespace muster::dialects::kubernetes {

namespace {

bool is_variable_of_the_shell(std::string_view name) {
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

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
      if (reference && reference->optional) {
        secret->warning("optional has no effect: the secret must exist");
      }
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

void read_environment_from(const Node& list, const PodContext& context, const Labels& labels,
                           Pod& pod) {
  EnvironmentReading reading(context, labels, pod);
  for (const Node& entry : list.elements()) reading.read_from(entry);
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

}  // namespace muster::dialects::kubernetes
