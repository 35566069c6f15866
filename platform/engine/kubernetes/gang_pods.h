// The pods of gangs: which pods exist, for how long, and the content of their images. A gang gets
// its pods when it is prepared, and loses the unneeded pods when its preparation fails.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/kubernetes/cluster_view.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/preparations.h"

namespace muster::engine::kubernetes {

class GangPods {
 public:
  struct Parts {
    base::EventLoop& loop;
    PodGangTable& gangs;
    ClusterView& view;
    GangObjects& objects;
    Preparations& preparations;
  };

  GangPods(const PodSite& site, Parts parts) : site_(site), parts_(parts) {}

  /// Creates the pods that are missing, and waits for all of `pods`; as Preparations::add(). Waits
  /// first until the objects of the same gang are deleted, if they are being deleted. A task that
  /// was prepared for another node gets another pod.
  [[nodiscard]] std::shared_ptr<void> prepare(
      const PodJob& job, std::vector<PodTask> pods, Preparations::Progress progress,
      Preparations::Done done, Preparations::Since since = Preparations::Since::kBegin);
  /// These pods are not needed any more, unless they were started or another preparation waits for
  /// them.
  void give_up(const PodGangPointer& gang, const std::vector<std::string>& names);

  /// What the muster-nodes of prepared pods have reported of their images.
  std::vector<launch::ImageFacts> facts_of(const GangId& gang,
                                           const std::vector<ImageRequest>& images) const;
  /// Empty: the node has none, or is unknown.
  std::string gpu_model_on(const std::string& node) const;

 private:
  std::shared_ptr<void> prepare_later(const PodGangPointer& leaving, const PodJob& job,
                                      std::vector<PodTask> pods, Preparations::Progress progress,
                                      Preparations::Done done, Preparations::Since since);
  bool mounts_programs_on(const std::string& node) const;
  void create(const PodGangPointer& gang, bool is_new);
  void drop_pod(const PodGangPointer& gang, const std::string& task);

  const PodSite& site_;
  Parts parts_;
  base::SystemRandom random_;
};

}  // namespace muster::engine::kubernetes
