// The leftovers of an earlier server: containers, networks and volumes on the hosts with this
// server's label, and copies of tasks' folders on this machine. Running tasks are adopted;
// everything else is removed.
//
// Each host lists its containers, networks and volumes once: when this server opens, or when the
// host answers for the first time. Objects that are created later are not leftovers.
//
// On the loop's thread. The parts that the constructor takes must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/container/container_tasks.h"
#include "engine/container/gang_networks.h"
#include "engine/container/hosts.h"
#include "engine/container/labels.h"
#include "engine/container/options.h"
#include "engine/container/removals.h"
#include "engine/container/steps.h"
#include "engine/container/task_table.h"
#include "engine/engine.h"

namespace muster::engine {

class Leftovers {
 public:
  Leftovers(base::EventLoop& loop, const ContainerEngineOptions& options, TaskTable& tasks,
            ContainerTasks& running, GangNetworks& networks, Removals& removals);

  /// Asks the hosts that answer for their things; runs the loop until all have listed them.
  void ask(const Hosts& hosts);
  /// A host answers, for the first time or again.
  void host_is_present(HeldHost& host);
  /// Calls `then` once the host has listed its objects. A start that creates objects waits for
  /// this: an object that is created during the listing would be removed as a leftover. Errors: of
  /// the listing, which the next call repeats.
  void when_listed(HeldHost& host, Then then);

  /// See Engine::adopt().
  AdoptionResult adopt(const GangId& gang, const std::string& task, const Hosts& hosts);
  /// Removes everything that was not adopted; for hosts that answer later, when they do.
  void sweep();
  bool has_swept() const { return has_swept_; }

 private:
  /// The objects that a host has listed.
  struct Inventory {
    std::vector<ContainerState> containers;
    NamedWithLabels networks;
    NamedWithLabels volumes;

    /// nullptr: there is no such container.
    const ContainerState* container(const std::string& id) const;
  };

  void take_inventory(HeldHost& host);
  void has_listed(HeldHost& host, const base::Result<void>& all, Inventory found);
  void take_up(const std::shared_ptr<HeldTask>& task, bool has_ended);
  void sweep(HeldHost& host);
  void sweep_networks_and_volumes(HeldHost& host);

  base::EventLoop& loop_;
  const ContainerEngineOptions& options_;
  TaskTable& tasks_;
  ContainerTasks& running_;
  GangNetworks& networks_;
  Removals& removals_;
  Later later_;
  std::map<HeldHost*, Inventory> inventories_;      ///< of the hosts that have answered
  std::map<HeldHost*, std::vector<Then>> listing_;  ///< hosts that are asked, and who waits
  bool has_swept_ = false;
};

}  // namespace muster::engine
