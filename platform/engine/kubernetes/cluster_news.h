// What the cluster reports (cluster_view.h), passed on to the parts that act on it: a pod that has
// changed may be ready to be connected to, end a preparation, or be lost.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <set>
#include <string>

#include "engine/kubernetes/cluster_view.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/losses.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/options.h"
#include "engine/kubernetes/pod_lines.h"
#include "engine/kubernetes/preparations.h"

namespace muster::engine::kubernetes {

class ClusterNews {
 public:
  struct Parts {
    PodGangTable& gangs;
    ClusterView& view;
    PodLines& lines;
    Preparations& preparations;
    PodLosses& losses;
    GangObjects& objects;
  };

  ClusterNews(const KubernetesOptions& options, Parts parts) : options_(options), parts_(parts) {}

  /// For ClusterView::begin().
  ClusterView::Hooks hooks();

 private:
  void pod_changed(const OwnPod& own);
  void pod_gone(const OwnPod& own);
  void warned(const PodEvent& event);
  void container_started(const OwnPod& own);
  void workload_changed(const std::string& group, const std::string& why);
  void synced();

  const KubernetesOptions& options_;
  Parts parts_;
  std::set<std::string> unknown_;  ///< names of gangs whose pods no record explains
};

}  // namespace muster::engine::kubernetes
