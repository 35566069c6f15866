// The server's view of the cluster, by watches: its pods, the nodes with the pods of others on
// them, the warnings about its pods, and the starts of their containers, which their status reports
// up to a second later.
//
// While the server may not list the pods of all namespaces, it lists those of its own namespace. Nodes
// then seem emptier than they are, and the cluster's scheduler has the last word.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/kubernetes/api_client.h"
#include "engine/kubernetes/nodes.h"
#include "engine/kubernetes/pod_state.h"
#include "engine/kubernetes/watch.h"

namespace muster::engine::kubernetes {

/// A pod of this server.
struct OwnPod {
  std::string gang;  ///< as gang_name()
  std::string task;  ///< empty: its name is no legal label
  PodFacts facts;
};

class ClusterView {
 public:
  struct Hooks {
    std::function<void(const OwnPod&)> on_pod;
    std::function<void(const OwnPod&)> on_pod_gone;
    std::function<void(const PodEvent&)> on_warning;
    /// The container of a task has been started. Optional: not watched without it.
    std::function<void(const OwnPod&)> on_container = {};
    /// Why Kueue does not admit a group of pods; empty: it has admitted it. Optional.
    std::function<void(const std::string& group, const std::string& why)> on_workload = {};
    /// All pods that exist have been reported.
    std::function<void()> on_synced;
    /// The API server answers again, or not any more.
    std::function<void()> on_reach;
  };

  ClusterView(base::EventLoop& loop, ApiClient& client, NodeOptions options);

  /// REQUIRES: has not been called before.
  void begin(Hooks hooks);

  /// Empty until all nodes were listed.
  std::vector<Node> nodes() const;
  bool has_node(const std::string& name) const { return book_.has(name); }
  bool has_nodes() const { return has_nodes_; }
  bool mounts_images(const std::string& node) const { return book_.mounts_images(node); }
  std::string gpu_model_of(const std::string& node) const { return book_.gpu_model_of(node); }
  /// `changed` is called for the first change at once, and for later changes at most every
  /// kReportAgain: each call makes the server read all nodes and plan.
  std::shared_ptr<void> watch_nodes(std::function<void()> changed);
  static constexpr std::chrono::milliseconds kReportAgain{300};

  /// Whether the pods are known.
  bool is_synced() const { return is_synced_; }
  /// Why the view of the pods is outdated.
  const std::optional<base::Error>& outage() const {
    return own_pods_ != nullptr && !all_is_back_ ? own_outage_ : all_outage_;
  }

 private:
  void watch_all_pods();
  void watch_own_pods();
  void pods_synced();
  void watch_nodes_of_cluster();
  void watch_warnings();
  void watch_containers();
  void watch_workloads();
  void take_pod(const Json& pod);
  void pod_gone(const ObjectKey& key, const Json* last);
  void nodes_changed();
  void report_nodes();

  base::EventLoop& loop_;
  ApiClient& client_;
  NodeOptions options_;
  Hooks hooks_;
  NodeBook book_;
  std::map<std::string, OwnPod> own_;  ///< by uid
  std::set<std::string> unconfirmed_;  ///< uids of own pods that own_pods_ has not listed yet
  std::unique_ptr<Watch> all_pods_;
  std::unique_ptr<Watch> own_pods_;  ///< unless the pods of all namespaces can be watched
  bool all_is_back_ = false;         ///< own_pods_ lists once more, and is then dropped
  std::unique_ptr<Watch> nodes_;
  std::unique_ptr<Watch> warnings_;
  std::unique_ptr<Watch> containers_;
  std::unique_ptr<Watch> workloads_;
  bool has_nodes_ = false;
  bool is_synced_ = false;
  std::optional<base::Error> all_outage_;
  std::optional<base::Error> own_outage_;
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
  bool is_change_due_ = false;             ///< a change of the nodes has yet to be reported
  base::EventLoop::Interest next_report_;  ///< runs while a report is less than kReportAgain ago
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::engine::kubernetes
