#include <gtest/gtest.h>

#include "engine/doctor/doctor.h"

namespace muster::engine::doctor {

namespace {

using job::Finding;
using Verdict = job::Finding::Verdict;

KubernetesFacts healthy_kubernetes() {
  KubernetesFacts facts;
  facts.access = kubernetes::AccessFacts{.server = "https://10.0.0.1:6443",
                                         .source = "context 'lab' of /c",
                                         .method = "token",
                                         .space = "",
                                         .proxy = ""};
  facts.space = "training";
  facts.node_image = "muster-node:1";
  facts.version = kubernetes::ServerVersion{
      .major = 1, .minor = 37, .git_version = "v1.37.2", .platform = "linux/amd64"};
  facts.rights = {{.question = {.verb = "create",
                                .resource = kubernetes::kPods,
                                .subresource = "",
                                .space = "training"},
                   .purpose = "no pod can be made",
                   .answer = kubernetes::AccessAnswer{.allowed = true, .reason = ""}}};
  Node node{.name = "n1"};
  node.gpus = 2;
  node.gpu_model = "A100";
  facts.nodes = std::vector<KubernetesNode>{
      {.name = "n1", .kubelet = "v1.37.2", .runtime = "containerd://1.7", .offer = node}};
  facts.pod_security = std::string("restricted");
  facts.has_dns = true;
  facts.storage_classes = std::vector<std::string>{"fast"};
  return facts;
}

std::vector<Finding> findings_on(const job::Diagnosis& diagnosis, const std::string& subject) {
  std::vector<Finding> found;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.subject == subject) found.push_back(finding);
  }
  return found;
}

TEST(KubernetesDoctor, FindsAHealthyClusterFine) {
  const job::Diagnosis diagnosis = diagnose(healthy_kubernetes());
  EXPECT_TRUE(can_run(diagnosis));
  for (const Finding& finding : diagnosis.findings) {
    EXPECT_TRUE(finding.verdict == Verdict::kFine || finding.verdict == Verdict::kNote)
        << finding.subject << ": " << finding.text;
  }
  EXPECT_EQ(findings_on(diagnosis, "GPUs").at(0).text, "2 A100");
}

TEST(KubernetesDoctor, NamesAMissingRightAndWhatItIsFor) {
  KubernetesFacts facts = healthy_kubernetes();
  facts.rights[0].answer = kubernetes::AccessAnswer{.allowed = false, .reason = ""};
  const job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_FALSE(can_run(diagnosis));
  EXPECT_EQ(findings_on(diagnosis, "rights").at(0).text,
            "may not create pods in namespace training: no pod can be made");
}

/// "list events in lab", and "!" before it if no job runs without this right.
std::vector<std::string> rights_in_words(const kubernetes::KubernetesOptions& options) {
  std::vector<std::string> words;
  for (const KubernetesRight& right : kubernetes_rights("lab", options)) {
    const kubernetes::AccessQuestion& question = right.question;
    std::string text = right.is_needed ? "!" : "";
    text += question.verb + " " + std::string(question.resource.plural);
    if (!question.subresource.empty()) text += "/" + question.subresource;
    words.push_back(text + (question.space.empty() ? "" : " in " + question.space));
  }
  return words;
}

TEST(KubernetesDoctor, TriesTheRightsThatTheOptionsNeed) {
  using Words = std::vector<std::string>;
  const Words own{"!create pods in lab",     "!delete pods in lab",
                  "!list pods in lab",       "!watch pods in lab",
                  "!create secrets in lab",  "!delete secrets in lab",
                  "!create services in lab", "!create networkpolicies in lab"};
  const Words of_cluster{"!list nodes", "!watch nodes",       "list pods",
                         "watch pods",  "list events in lab", "watch events in lab"};
  const auto all = [&](const Words& added, const Words& last) {
    Words words = own;
    words.insert(words.end(), added.begin(), added.end());
    words.insert(words.end(), of_cluster.begin(), of_cluster.end());
    words.insert(words.end(), last.begin(), last.end());
    return words;
  };

  EXPECT_EQ(rights_in_words({}), all({"!create pods/portforward in lab"}, {}));

  kubernetes::KubernetesOptions called;
  called.callback_hosts = {"muster.lab.svc"};
  called.pods.queue = kubernetes::PodQueue::kKueue;
  called.pods.artifacts_class = "nfs";
  EXPECT_EQ(rights_in_words(called), all({"!create persistentvolumeclaims in lab"},
                                         {"list workloads in lab", "watch workloads in lab",
                                          "patch workloads/status in lab"}));
}

TEST(KubernetesDoctor, StopsAtAnApiServerThatDoesNotAnswer) {
  KubernetesFacts facts = healthy_kubernetes();
  facts.version = base::Error{.code = base::ErrorCode::kUnavailable, .what = "it does not answer"};
  const job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_FALSE(can_run(diagnosis));
  EXPECT_EQ(diagnosis.findings.size(), 2U);
  facts.access = base::Error{.code = base::ErrorCode::kNotFound, .what = "no kubeconfig"};
  EXPECT_EQ(diagnose(facts).findings.at(0).text, "no kubeconfig");
}

TEST(KubernetesDoctor, ReportsNodesThatTakeNoJobsAndOldVersions) {
  KubernetesFacts facts = healthy_kubernetes();
  facts.nodes->front().offer.labels[kSilentSince] = "2026-11-28T10:00:00Z";
  facts.version->minor = 28;
  const job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(findings_on(diagnosis, "nodes").at(0).text,
            "1 node, 0 of them take jobs; n1 is not ready");
  EXPECT_EQ(findings_on(diagnosis, "the API server").at(0).verdict, Verdict::kLacks);
}

}  // namespace

}  // namespace muster::engine::doctor
