// Why the pods of a job on Kubernetes do not run, or run no more.
#include "job/exit_status.h"
#include "words/parts.h"

namespace muster::words {

namespace {

/// ": 0/2 nodes are available: 2 Insufficient cpu (Unschedulable)"
std::string in_kubernetes_words(const job::KubernetesWaits& fact) {
  std::string text;
  if (!fact.text.empty()) text += ": " + fact.text;
  if (!fact.word.empty()) text += " (" + fact.word + ")";
  return text;
}

}  // namespace

std::string kubernetes_sentence(const job::KubernetesWaits& fact) {
  using Stage = job::KubernetesWaits::Stage;
  const std::string who = "the pod of " + fact.task;
  const std::string on = fact.node.empty() ? "" : " on node " + fact.node;
  std::string text;
  switch (fact.stage) {
    case Stage::kToBeCreated:
      text = who + " is being created";
      break;
    case Stage::kUnschedulable:
      text = who + (fact.word == "SchedulingGated" ? " waits to be admitted by the cluster's queue"
                                                   : " waits for a node");
      break;
    case Stage::kImage:
      text = who + on + " waits for image " + fact.image;
      break;
    case Stage::kCreating:
      text = who + on + " is being prepared";
      break;
    case Stage::kInitContainer:
      text = who + on + " runs init container " + fact.container;
      break;
    case Stage::kStarting:
      text = who + on + " starts";
      break;
    case Stage::kConnecting:
      text = who + on + " runs, and its muster-node does not answer yet";
      break;
    case Stage::kAway:
      text = "the Kubernetes API server does not answer";
      break;
  }
  text += in_kubernetes_words(fact);
  if (fact.others > 0) {
    text += "; " + std::to_string(fact.others) + (fact.others == 1 ? " other pod" : " other pods") +
            (fact.others == 1 ? " does" : " do") + " not run yet";
  }
  return text;
}

std::string kubernetes_sentence(const job::KubernetesEnded& fact) {
  return fact.pod ? job::explain(*fact.pod) : fact.text;
}

}  // namespace muster::words
