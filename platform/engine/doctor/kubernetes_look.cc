// Facts about a cluster of Kubernetes, by requests that change nothing.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/event_loop.h"
#include "engine/doctor/doctor.h"
#include "engine/kubernetes/json_text.h"
#include "engine/kubernetes/nodes.h"

namespace muster::engine::doctor {

using base::Result;
using kubernetes::AccessAnswer;
using kubernetes::AccessQuestion;
using kubernetes::ApiClient;
using kubernetes::Json;
using kubernetes::text_of;

namespace {

constexpr kubernetes::Resource kStorageClasses{
    .group = "storage.k8s.io", .plural = "storageclasses", .is_namespaced = false};

/// Several requests at once; run() returns when all were answered.
class Questions {
 public:
  Questions(base::EventLoop& loop, ApiClient& client) : loop_(loop), client_(client) {}

  template <class Value, class Ask>
  void ask(Result<Value>& into, Ask&& begin) {
    ++left_;
    calls_.push_back(begin([this, &into](Result<Value> answer) {
      into = std::move(answer);
      if (--left_ == 0) loop_.stop();
    }));
  }
  void run() {
    if (left_ > 0) loop_.run();
  }
  ApiClient& client() { return client_; }

 private:
  base::EventLoop& loop_;
  ApiClient& client_;
  int left_ = 0;
  std::vector<kubernetes::Call> calls_;
};

std::vector<KubernetesNode> nodes_in(const std::vector<Json>& objects,
                                     const kubernetes::NodeOptions& options) {
  std::vector<KubernetesNode> nodes;
  for (const Json& object : objects) {
    kubernetes::NodeBook book(options);
    book.set_node(object);
    nodes.push_back({.name = text_of(object, "metadata", "name"),
                     .kubelet = text_of(object, "status", "nodeInfo", "kubeletVersion"),
                     .runtime = text_of(object, "status", "nodeInfo", "containerRuntimeVersion"),
                     .offer = book.nodes().front()});
  }
  return nodes;
}

void ask_about_cluster(Questions& questions, const kubernetes::KubernetesOptions& options,
                       KubernetesFacts& facts) {
  ApiClient& client = questions.client();
  for (KubernetesRight& right : facts.rights) {
    questions.ask(right.answer, [&](ApiClient::Then<AccessAnswer> then) {
      return client.may_i(right.question, std::move(then));
    });
  }
  Result<ApiClient::Listed> listed = base::Error{};
  Result<ApiClient::Listed> classes = base::Error{};
  Result<Json> space = base::Error{};
  Result<Json> dns = base::Error{};
  Result<Json> claim = base::Error{};
  questions.ask(listed, [&](ApiClient::Then<ApiClient::Listed> then) {
    return client.list({.resource = kubernetes::kNodes, .space = "", .labels = "", .fields = ""},
                       std::move(then));
  });
  questions.ask(classes, [&](ApiClient::Then<ApiClient::Listed> then) {
    return client.list({.resource = kStorageClasses, .space = "", .labels = "", .fields = ""},
                       std::move(then));
  });
  questions.ask(space, [&](ApiClient::Then<Json> then) {
    return client.get({kubernetes::kNamespaces, "", facts.space}, std::move(then));
  });
  questions.ask(dns, [&](ApiClient::Then<Json> then) {
    return client.get({kubernetes::kServices, "kube-system", "kube-dns"}, std::move(then));
  });
  if (!options.pods.storage_claim.empty()) {
    questions.ask(claim, [&](ApiClient::Then<Json> then) {
      return client.get(
          {kubernetes::kPersistentVolumeClaims, facts.space, options.pods.storage_claim},
          std::move(then));
    });
  }
  questions.run();
  if (listed) {
    facts.nodes = nodes_in(listed->objects, options.nodes);
  } else {
    facts.nodes = listed.error();
  }
  if (space) {
    facts.pod_security =
        text_of(*space, "metadata", "labels", "pod-security.kubernetes.io/enforce");
  } else {
    facts.pod_security = space.error();
  }
  if (dns) {
    facts.has_dns = true;
  } else {
    facts.has_dns = dns.error();
  }
  facts.storage_claim = options.pods.storage_claim;
  if (claim) {
    facts.storage_phase = text_of(*claim, "status", "phase");
  } else {
    facts.storage_phase = claim.error();
  }
  if (!classes) {
    facts.storage_classes = classes.error();
    return;
  }
  std::vector<std::string> names;
  for (const Json& one : classes->objects) names.push_back(text_of(one, "metadata", "name"));
  facts.storage_classes = std::move(names);
}

}  // namespace

std::vector<KubernetesRight> kubernetes_rights(const std::string& space,
                                               const kubernetes::KubernetesOptions& options) {
  using namespace kubernetes;  // NOLINT(google-build-using-namespace): its resources
  std::vector<KubernetesRight> rights;
  const auto need = [&](const Resource& resource, std::initializer_list<const char*> verbs,
                        const char* purpose, const char* subresource = "") {
    for (const char* const verb : verbs) {
      rights.push_back({.question = {.verb = verb,
                                     .resource = resource,
                                     .subresource = subresource,
                                     .space = space},
                        .purpose = purpose});
    }
  };
  need(kPods, {"create", "delete", "list", "watch"}, "no pod can be made or followed");
  need(kSecrets, {"create", "delete"}, "pods get no keys");
  need(kServices, {"create"}, "pods have no names");
  need(kNetworkPolicies, {"create"}, "the network of a job cannot be closed to others");
  if (!options.are_called())
    need(kPods, {"create"}, "the server cannot connect to pods", "portforward");
  if (!options.pods.artifacts_class.empty()) {
    need(kPersistentVolumeClaims, {"create"}, "the tasks of a job cannot share /artifacts");
  }
  const auto require_right = [&](const Resource& resource, const char* verb,
                                 const std::string& where, bool is_needed, const char* purpose,
                                 const char* subresource = "") {
    rights.push_back({.question = {.verb = verb,
                                   .resource = resource,
                                   .subresource = subresource,
                                   .space = where},
                      .is_needed = is_needed,
                      .purpose = purpose});
  };
  require_right(kNodes, "list", "", true, "Muster cannot plan over the nodes");
  require_right(kNodes, "watch", "", true, "Muster cannot plan over the nodes");
  for (const char* const verb : {"list", "watch"}) {
    require_right(kPods, verb, "", false,
                  "the pods of other namespaces are not subtracted from the nodes");
  }
  for (const char* const verb : {"list", "watch"}) {
    require_right(kEvents, verb, space, false, "explain shows no events of pods that wait");
  }
  if (options.pods.queue != PodQueue::kKueue) return rights;
  for (const char* const verb : {"list", "watch"}) {
    require_right(kWorkloads, verb, space, false,
                  "explain does not show why Kueue does not admit a job");
  }
  require_right(kWorkloads, "patch", space, false,
                "Kueue keeps the pods of a job that is stopped while it waits", "status");
  return rights;
}

KubernetesFacts look_at_kubernetes(Result<kubernetes::KubernetesOptions> options) {
  KubernetesFacts facts;
  if (!options) {
    facts.access = options.error();
    return facts;
  }
  base::EventLoop loop;
  auto access = kubernetes::open_access(loop, options->access);
  if (!access) {
    facts.access = access.error();
    return facts;
  }
  facts.access = (*access)->facts();
  facts.space = options->pods.space.empty() ? facts.access->space : options->pods.space;
  if (facts.space.empty()) facts.space = "default";
  facts.node_image = options->pods.node_image;
  facts.are_called = options->are_called();
  ApiClient client(loop, *std::move(access),
                   {.version = options->version, .answer = kPatience, .patience = kPatience});
  Questions first(loop, client);
  first.ask(facts.version, [&](ApiClient::Then<kubernetes::ServerVersion> then) {
    return client.version(std::move(then));
  });
  first.run();
  if (!facts.version) return facts;
  facts.rights = kubernetes_rights(facts.space, *options);
  Questions others(loop, client);
  ask_about_cluster(others, *options, facts);
  return facts;
}

}  // namespace muster::engine::doctor
