#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "engine/doctor/doctor.h"

namespace muster::engine::doctor {

using job::Diagnosis;
using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

constexpr int kOldestMinor = 29;

Finding cluster_access(const KubernetesFacts& facts) {
  const std::string subject = "access";
  if (!facts.access) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = facts.access.error().what,
            .advice = facts.access.error().advice};
  }
  const kubernetes::AccessFacts& access = *facts.access;
  std::string text = access.server + ", by " + access.source + ", " + access.method;
  if (!access.proxy.empty()) text += ", through " + access.proxy;
  if (!access.skips_verification) {
    return {.subject = subject, .text = std::move(text), .advice = {}};
  }
  return {.subject = subject,
          .verdict = Verdict::kLacks,
          .text = text + "; its certificate is not checked (insecure-skip-tls-verify)",
          .advice = "put the cluster's certificate authority into the kubeconfig"};
}

Finding api_server(const KubernetesFacts& facts) {
  const std::string subject = "the API server";
  if (!facts.version) {
    return {.subject = subject,
            .verdict = Verdict::kFails,
            .text = facts.version.error().what,
            .advice = facts.version.error().advice};
  }
  const kubernetes::ServerVersion& version = *facts.version;
  const bool is_old = version.major == 1 && version.minor < kOldestMinor;
  if (!is_old) {
    return {.subject = subject,
            .text = "Kubernetes " + version.git_version + ", " + version.platform,
            .advice = {}};
  }
  return {.subject = subject,
          .verdict = Verdict::kLacks,
          .text = "Kubernetes " + version.git_version,
          .advice = "Muster is tested with 1.29 and later"};
}

/// "create pods/portforward"
std::string right_in_words(const kubernetes::AccessQuestion& question) {
  std::string text = question.verb + " " + std::string(question.resource.plural);
  if (!question.subresource.empty()) text += "/" + question.subresource;
  if (question.resource.is_namespaced) {
    text += question.space.empty() ? " of all namespaces" : " in namespace " + question.space;
  }
  return text;
}

std::vector<Finding> rights(const KubernetesFacts& facts) {
  std::vector<Finding> findings;
  int granted = 0;
  for (const KubernetesRight& right : facts.rights) {
    const bool is_granted = right.answer && right.answer->allowed;
    granted += is_granted ? 1 : 0;
    if (is_granted) continue;
    std::string text = "may not " + right_in_words(right.question) + ": " + right.purpose;
    if (!right.answer) text = right_in_words(right.question) + ": " + right.answer.error().what;
    findings.push_back({.subject = "rights",
                        .verdict = right.is_needed ? Verdict::kFails : Verdict::kLacks,
                        .text = std::move(text),
                        .advice = "grant it by a Role or ClusterRole to this user"});
  }
  if (findings.empty() && granted > 0) {
    findings.push_back({.subject = "rights",
                        .text = "all that Muster needs in namespace " + facts.space,
                        .advice = {}});
  }
  return findings;
}

std::string joined_set(const std::set<std::string>& words) {
  return base::joined(std::vector<std::string>(words.begin(), words.end()));
}

std::vector<Finding> cluster_nodes(const KubernetesFacts& facts) {
  if (!facts.nodes) {
    return {{.subject = "nodes", .verdict = Verdict::kFails, .text = facts.nodes.error().what}};
  }
  int ready = 0;
  std::map<std::string, int> gpus;
  std::set<std::string> runtimes;
  std::set<std::string> kubelets;
  std::string closed;
  for (const KubernetesNode& node : *facts.nodes) {
    runtimes.insert(node.runtime);
    kubelets.insert(node.kubelet);
    if (node.offer.gpus > 0) gpus[node.offer.gpu_model] += node.offer.gpus;
    const bool takes = !is_silent(node.offer) && !is_closed(node.offer);
    ready += takes ? 1 : 0;
    if (takes || !closed.empty()) continue;
    closed = node.name + (is_silent(node.offer) ? " is not ready" : " is cordoned");
  }
  const auto count = static_cast<int>(facts.nodes->size());
  std::string text = base::count_text(count, "node");
  if (ready < count) text += ", " + std::to_string(ready) + " of them take jobs; " + closed;
  std::vector<Finding> findings{
      {.subject = "nodes", .verdict = ready == 0 ? Verdict::kFails : Verdict::kFine, .text = text}};
  if (count > 0) {
    findings.push_back({.subject = "kubelets",
                        .text = joined_set(kubelets) + "; runtime " + joined_set(runtimes),
                        .advice = {}});
  }
  if (gpus.empty()) {
    findings.push_back({.subject = "GPUs",
                        .verdict = Verdict::kNote,
                        .text = "no node offers any",
                        .advice = "with GPUs in the nodes: install the device plug-in of their "
                                  "vendor, and see kubernetes.gpu_resources"});
  }
  for (const auto& [model, number] : gpus) {
    findings.push_back({.subject = "GPUs",
                        .text = std::to_string(number) + (model.empty() ? "" : " " + model),
                        .advice = {}});
  }
  return findings;
}

Finding space_of_pods(const KubernetesFacts& facts) {
  const std::string subject = "namespace " + facts.space;
  if (!facts.pod_security) {
    const bool is_missing = facts.pod_security.error().code == base::ErrorCode::kNotFound;
    return {.subject = subject,
            .verdict = is_missing ? Verdict::kFails : Verdict::kNote,
            .text = facts.pod_security.error().what,
            .advice = is_missing ? "kubectl create namespace " + facts.space : ""};
  }
  const std::string& level = *facts.pod_security;
  if (level.empty()) {
    return {.subject = subject,
            .verdict = Verdict::kNote,
            .text =
                "enforces no level of Pod Security; Muster's pods meet \"restricted\" unless a "
                "job requests more",
            .advice = {}};
  }
  return {.subject = subject, .text = "enforces Pod Security \"" + level + "\"", .advice = {}};
}

Finding names_in_cluster(const KubernetesFacts& facts) {
  if (facts.has_dns) return {.subject = "DNS", .text = "there is a Service kube-dns", .advice = {}};
  return {.subject = "DNS",
          .verdict = Verdict::kNote,
          .text = "no Service kube-dns was seen: " + facts.has_dns.error().what,
          .advice =
              "host names of tasks need a cluster DNS; kubernetes.cluster_domain names its "
              "domain"};
}

std::vector<Finding> storage_in_cluster(const KubernetesFacts& facts) {
  std::vector<Finding> findings;
  if (facts.storage_claim.empty()) {
    findings.push_back({.subject = "storage",
                        .verdict = Verdict::kNote,
                        .text = "projects have none",
                        .advice = "kubernetes.storage_claim names a persistent volume claim"});
  } else if (!facts.storage_phase) {
    findings.push_back(
        {.subject = "storage",
         .verdict = Verdict::kLacks,
         .text = "claim " + facts.storage_claim + ": " + facts.storage_phase.error().what,
         .advice = {}});
  } else {
    findings.push_back(
        {.subject = "storage",
         .verdict = *facts.storage_phase == "Bound" ? Verdict::kFine : Verdict::kNote,
         .text = "claim " + facts.storage_claim + " is " + *facts.storage_phase,
         .advice = {}});
  }
  if (facts.storage_classes) {
    findings.push_back(
        {.subject = "storage classes",
         .verdict = Verdict::kNote,
         .text = facts.storage_classes->empty() ? "none" : base::joined(*facts.storage_classes),
         .advice = {}});
  }
  return findings;
}

Finding way_to_pods(const KubernetesFacts& facts) {
  return {.subject = "connections",
          .verdict = Verdict::kNote,
          .text = facts.are_called ? "pods call this server (kubernetes.callback)"
                                   : "the server connects to pods through the API server",
          .advice = {}};
}

}  // namespace

Diagnosis diagnose(const KubernetesFacts& facts) {
  Diagnosis diagnosis{.engine = "kubernetes", .findings = {cluster_access(facts)}};
  std::vector<Finding>& findings = diagnosis.findings;
  const auto add = [&](std::vector<Finding> more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  if (!facts.access) return diagnosis;
  findings.push_back(api_server(facts));
  if (!facts.version) return diagnosis;
  add(rights(facts));
  add(cluster_nodes(facts));
  findings.push_back(space_of_pods(facts));
  findings.push_back(names_in_cluster(facts));
  add(storage_in_cluster(facts));
  findings.push_back(way_to_pods(facts));
  findings.push_back({.subject = "node image",
                      .verdict = Verdict::kNote,
                      .text = facts.node_image + ", which nodes pull for each pod",
                      .advice = {}});
  return diagnosis;
}

}  // namespace muster::engine::doctor
