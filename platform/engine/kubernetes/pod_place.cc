#include "engine/kubernetes/pod_place.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "job/kubernetes.h"
#include "job/project.h"

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

namespace {

Json tolerations_of(const PodJob& job, const PodSite& site) {
  Json all = Json::array();
  for (const auto& texts : {site.tolerations, job.options.tolerations}) {
    for (const std::string& text : texts) {
      const auto toleration = job::toleration_of(text);
      if (!toleration) continue;
      Json one = Json::object();
      if (!toleration->key.empty()) one["key"] = toleration->key;
      one["operator"] = toleration->value ? "Equal" : "Exists";
      if (toleration->value) one["value"] = *toleration->value;
      if (!toleration->effect.empty()) one["effect"] = toleration->effect;
      all.push_back(std::move(one));
    }
  }
  return all;
}

/// By affinity, not by nodeName: the cluster's scheduler then checks the node's resources and
/// taints and reports what is missing, whereas the kubelet would fail the pod for good.
Json affinity_to(const std::string& node) {
  const Json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
  const Json term{{"matchFields", Json::array({field})}};
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             {{"nodeSelectorTerms", Json::array({term})}}}}}};
}

/// The label by which the discovery of a GPU's vendor names the model.
std::string model_label(const PodSite& site) {
  const std::string resource = gpu_resource("", site);
  return resource.substr(0, resource.find('/')) + "/gpu.product";
}

/// nullopt: any node.
std::optional<Json> affinity_to(const PodChoice& choice, bool has_gpus, const PodSite& site) {
  Json common = Json::object();
  for (const std::string& node : choice.avoided_nodes) {
    common["matchFields"].push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  }
  if (has_gpus && !choice.gpu_models.empty()) {
    common["matchExpressions"].push_back(
        {{"key", model_label(site)}, {"operator", "In"}, {"values", choice.gpu_models}});
  }
  Json terms = Json::array();
  if (choice.pools.empty()) {
    if (common.empty()) return std::nullopt;
    terms.push_back(common);
  } else {
    Json labelled = common;
    labelled["matchExpressions"].push_back(
        {{"key", site.pool_label}, {"operator", "In"}, {"values", choice.pools}});
    terms.push_back(std::move(labelled));
    const bool has_default = std::find(choice.pools.begin(), choice.pools.end(),
                                       job::kDefaultPool) != choice.pools.end();
    if (has_default) {
      common["matchExpressions"].push_back(
          {{"key", site.pool_label}, {"operator", "DoesNotExist"}});
      terms.push_back(std::move(common));
    }
  }
  return Json{{"nodeAffinity",
               {{"requiredDuringSchedulingIgnoredDuringExecution",
                 {{"nodeSelectorTerms", std::move(terms)}}}}}};
}

}  // namespace

std::string gpu_resource(const std::string& model, const PodSite& site) {
  const auto own = site.gpu_resources.find(model);
  if (own != site.gpu_resources.end()) return own->second;
  const auto any = site.gpu_resources.find("");
  return any == site.gpu_resources.end() ? "nvidia.com/gpu" : any->second;
}

void add_place(const PodJob& job, const PodTask& task, const PodSite& site, Json& spec) {
  if (!task.node.empty()) {
    spec["affinity"] = affinity_to(task.node);
  } else if (auto affinity = affinity_to(job.choice, task.gpus > 0, site)) {
    spec["affinity"] = *std::move(affinity);
  }
  if (!job.options.node_selector.empty()) spec["nodeSelector"] = job.options.node_selector;
  if (Json all = tolerations_of(job, site); !all.empty()) spec["tolerations"] = std::move(all);
  const auto set = [&](const char* field, const std::string& own, const std::string& usual) {
    const std::string& name = own.empty() ? usual : own;
    if (!name.empty()) spec[field] = name;
  };
  set("priorityClassName", job.options.priority_class, site.priority_class);
  set("runtimeClassName", job.options.runtime_class, site.runtime_class);
  set("serviceAccountName", job.options.service_account, "");
}

}  // namespace muster::engine::kubernetes
