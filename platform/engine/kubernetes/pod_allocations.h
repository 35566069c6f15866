// Allocations of gangs that wait in a queue of the cluster (PodQueue): their pods are created without
// nodes, at once, and Kueue or the cluster's scheduler decides when and where they run. An allocation
// is granted when the muster-node of each pod is connected.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/allocation.h"
#include "engine/kubernetes/gangs.h"
#include "engine/kubernetes/preparations.h"
#include "engine/lent/reports.h"

namespace muster::engine::kubernetes {

class PodAllocations {
 public:
  /// Creates the pods that are missing, and waits for all; as Preparations::add().
  using Prepare = std::function<std::shared_ptr<void>(const PodJob&, std::vector<PodTask>,
                                                      Preparations::Progress, Preparations::Done)>;

  PodAllocations(PodGangTable& gangs, lent::Reports& reports, Prepare prepare)
      : gangs_(gangs), reports_(reports), prepare_(std::move(prepare)) {}

  /// Reports AllocationPending at each change, and then: AllocationGranted; AllocationRefused, if the
  /// pods can never run; AllocationRevoked, if another request may succeed. Pods that an earlier
  /// server has created for the gang are kept.
  void request(const GangId& gang, const AllocationRequest& request);
  /// Waits no longer for the gang's pods.
  void forget(const GangId& gang) { waiting_.erase(gang); }
  /// Reports that the gang has lost its allocation to another gang. `end`: of its first pod that was
  /// ended.
  void revoke(const PodGangPointer& gang, const job::PodEnd& end);

 private:
  void prepared(const GangId& gang, const AllocationRequest& request, base::Result<void> how);
  void grant(const PodGangPointer& gang, const AllocationRequest& request);
  std::vector<int> free_devices(const std::string& node, int count) const;

  PodGangTable& gangs_;
  lent::Reports& reports_;
  Prepare prepare_;
  std::map<GangId, std::shared_ptr<void>> waiting_;
};

}  // namespace muster::engine::kubernetes
