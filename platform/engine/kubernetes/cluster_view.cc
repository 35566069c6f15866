#include "engine/kubernetes/cluster_view.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "engine/kubernetes/json_text.h"
#include "engine/kubernetes/pod.h"

namespace muster::engine::kubernetes {

namespace {

bool is_forbidden(const base::Error& error) {
  const ApiRefusal* const refusal = refusal_of(error);
  return refusal != nullptr && refusal->status == 403;
}

/// A task whose name is not legal in a label has it in an annotation.
std::string task_label_of(const Json& pod) {
  std::string task = text_of(pod, "metadata", "labels", kTaskKey);
  return task.empty() ? text_of(pod, "metadata", "annotations", kTaskKey) : task;
}

std::string why_not_admitted(const Json& workload) {
  constexpr size_t kLongestReason = 500;
  const Json& conditions = member_of(workload, "status", "conditions");
  if (!conditions.is_array()) return "";
  for (const Json& condition : conditions) {
    const bool is_pending =
        text_of(condition, "type") == "QuotaReserved" && text_of(condition, "status") == "False";
    if (!is_pending) continue;
    return base::shortened(base::as_utf8(text_of(condition, "message")), kLongestReason);
  }
  return "";
}

}  // namespace

ClusterView::ClusterView(base::EventLoop& loop, ApiClient& client, NodeOptions options)
    : loop_(loop), client_(client), options_(std::move(options)), book_(options_) {}

void ClusterView::begin(Hooks hooks) {
  hooks_ = std::move(hooks);
  watch_all_pods();
  watch_nodes_of_cluster();
  watch_warnings();
  if (hooks_.on_container) watch_containers();
  if (hooks_.on_workload) watch_workloads();
}

void ClusterView::watch_all_pods() {
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& pod) { take_pod(pod); };
  handlers.on_gone = [this](const ObjectKey& key, const Json* last) { pod_gone(key, last); };
  handlers.on_synced = [this] { pods_synced(); };
  handlers.on_outdated = [this](const base::Error& error) {
    const bool may_not = is_forbidden(error);
    if (may_not && (own_pods_ == nullptr || all_is_back_)) {
      base::log_warning(error.what + "; Muster sees only the pods of namespace " + options_.space);
      watch_own_pods();
    } else if (!may_not) {
      base::log_warning("the pods in the cluster cannot be watched: " + error.what);
    }
    all_outage_ = may_not ? std::nullopt : std::optional(error);
    hooks_.on_reach();
  };
  handlers.on_current = [this] {
    all_outage_.reset();
    if (own_pods_ != nullptr && !std::exchange(all_is_back_, true)) {
      base::log_info("Muster sees the pods of all namespaces again");
      // A pod that only the other watch has seen may have gone before this one listed the pods.
      own_pods_->relist();
    }
    hooks_.on_reach();
  };
  all_pods_ = std::make_unique<Watch>(
      client_, Selection{.resource = kPods, .space = "", .labels = "", .fields = ""},
      std::move(handlers));
}

/// While the server has no right to watch the pods of all namespaces. A right may be missing for a
/// moment only, as when the API server has just started, so the other watch keeps trying.
void ClusterView::watch_own_pods() {
  all_is_back_ = false;
  for (const auto& [uid, own] : own_) unconfirmed_.insert(uid);
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& pod) { take_pod(pod); };
  handlers.on_gone = [this](const ObjectKey& key, const Json* last) { pod_gone(key, last); };
  handlers.on_synced = [this] {
    // They were deleted before this watch began.
    for (const std::string& uid : std::exchange(unconfirmed_, {})) {
      pod_gone({.space = options_.space, .name = "", .uid = uid}, nullptr);
    }
    pods_synced();
    if (!all_is_back_) return;
    own_pods_ = nullptr;
    own_outage_.reset();
  };
  handlers.on_outdated = [this](const base::Error& error) {
    base::log_warning("the pods of jobs cannot be watched: " + error.what);
    own_outage_ = error;
    hooks_.on_reach();
  };
  handlers.on_current = [this] {
    own_outage_.reset();
    hooks_.on_reach();
  };
  own_pods_ = std::make_unique<Watch>(
      client_, Selection{.resource = kPods, .space = options_.space, .labels = "", .fields = ""},
      std::move(handlers));
}

void ClusterView::pods_synced() {
  if (!std::exchange(is_synced_, true)) hooks_.on_synced();
  nodes_changed();
}

void ClusterView::watch_nodes_of_cluster() {
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& node) {
    if (book_.set_node(node)) nodes_changed();
  };
  handlers.on_gone = [this](const ObjectKey& key, const Json*) {
    if (book_.remove_node(key.name)) nodes_changed();
  };
  handlers.on_synced = [this] {
    has_nodes_ = true;
    nodes_changed();
  };
  handlers.on_outdated = [](const base::Error& error) {
    base::log_warning("the nodes of the cluster cannot be watched: " + error.what);
  };
  nodes_ = std::make_unique<Watch>(
      client_, Selection{.resource = kNodes, .space = "", .labels = "", .fields = ""},
      std::move(handlers));
}

void ClusterView::watch_warnings() {
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& event) {
    if (const auto read = read_event(event)) hooks_.on_warning(*read);
  };
  handlers.on_gone = [](const ObjectKey&, const Json*) {};
  handlers.on_outdated = [](const base::Error& error) {
    base::log_warning("the events of pods cannot be watched: " + error.what);
  };
  warnings_ = std::make_unique<Watch>(client_,
                                      Selection{.resource = kEvents,
                                                .space = options_.space,
                                                .labels = "",
                                                .fields = "involvedObject.kind=Pod,type=Warning"},
                                      std::move(handlers));
}

void ClusterView::watch_containers() {
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& event) {
    const auto read = read_event(event);
    if (!read || !read->is_task) return;
    const auto own = own_.find(read->uid);
    if (own == own_.end()) return;
    const OwnPod copy = own->second;
    hooks_.on_container(copy);
  };
  handlers.on_gone = [](const ObjectKey&, const Json*) {};
  handlers.on_outdated = [](const base::Error&) {};  // the status of the pods is enough
  containers_ =
      std::make_unique<Watch>(client_,
                              Selection{.resource = kEvents,
                                        .space = options_.space,
                                        .labels = "",
                                        .fields = "involvedObject.kind=Pod,reason=Started"},
                              std::move(handlers));
}

void ClusterView::watch_workloads() {
  WatchHandlers handlers;
  handlers.on_object = [this](const Json& workload) {
    // Kueue names the workload of a group of pods after the group.
    hooks_.on_workload(text_of(workload, "metadata", "name"), why_not_admitted(workload));
  };
  handlers.on_gone = [](const ObjectKey&, const Json*) {};
  handlers.on_outdated = [](const base::Error& error) {
    base::log_warning("the workloads of Kueue cannot be watched: " + error.what);
  };
  workloads_ = std::make_unique<Watch>(
      client_,
      Selection{.resource = kWorkloads, .space = options_.space, .labels = "", .fields = ""},
      std::move(handlers));
}

void ClusterView::take_pod(const Json& pod) {
  const bool is_ours = text_of(pod, "metadata", "labels", kOwnerKey) == options_.owner &&
                       text_of(pod, "metadata", "namespace") == options_.space;
  if (!is_ours) {
    if (book_.set_pod(pod)) nodes_changed();
    return;
  }
  const std::string uid = text_of(pod, "metadata", "uid");
  unconfirmed_.erase(uid);
  OwnPod& own = own_[uid];
  own = {.gang = text_of(pod, "metadata", "labels", kGangKey),
         .task = task_label_of(pod),
         .facts = read_pod(pod)};
  const OwnPod copy = own;
  hooks_.on_pod(copy);
}

void ClusterView::pod_gone(const ObjectKey& key, const Json* last) {
  if (book_.remove_pod(key.uid)) nodes_changed();
  const auto known = own_.find(key.uid);
  if (known == own_.end()) return;
  OwnPod gone = std::move(known->second);
  own_.erase(known);
  if (last != nullptr) gone.facts = read_pod(*last);
  hooks_.on_pod_gone(gone);
}

// --- nodes

std::vector<Node> ClusterView::nodes() const {
  if (!has_nodes_ || !is_synced_) return {};
  return book_.nodes();
}

std::shared_ptr<void> ClusterView::watch_nodes(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  watchers_.push_back(watcher);
  return watcher;
}

void ClusterView::nodes_changed() {
  if (!has_nodes_ || !is_synced_ || std::exchange(is_change_due_, true) || next_report_) return;
  loop_.post([this, weak = std::weak_ptr(alive_)] {
    if (weak.lock()) report_nodes();
  });
}

void ClusterView::report_nodes() {
  is_change_due_ = false;
  next_report_ = loop_.after(kReportAgain, [this] {
    next_report_.reset();
    if (is_change_due_) report_nodes();
  });
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = watchers_;
  for (const auto& watcher : watchers) {
    if (const auto still = watcher.lock()) (*still)();
  }
}

}  // namespace muster::engine::kubernetes
