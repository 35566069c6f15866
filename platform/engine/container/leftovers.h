// The leftovers of an earlier server: containers, networks and volumes on the hosts with this
// server's label, and copies of tasks' folders on this machine. Running tasks are adopted, also
// those of jobs whose record cannot be read or is missing; everything else is removed.
//
// Each host lists its containers, networks and volumes once: when this server opens, or when the
// host answers for the first time. Objects that are created later are not leftovers.
//
// On the loop's thread. The parts that the constructor takes must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  // See Engine. They are called before sweep(), and find tasks by the records of their containers
  // on this machine, so that tasks of hosts that do not answer yet are found, too. Only tasks of
  // the job's newest attempt count as running: all attempts share the folder of the artifacts.
  std::vector<RunningTask> running_tasks(const std::string& job_id, const Hosts& hosts) const;
  std::vector<std::string> unknown_jobs(
      const std::function<bool(const std::string& job_id)>& is_known) const;
  std::vector<std::string> jobs_with_tasks() const;
  /// Removes everything that was not adopted; for hosts that answer later, when they do.
  void sweep();
  bool has_swept() const { return has_swept_; }

 private:
  /// The objects that a host has listed.
  struct Inventory {
    std::vector<ContainerState> containers;
    NamedWithLabels networks;
    NamedWithLabels volumes;
    bool is_late = false;  ///< listed after the server began to use hosts

    /// nullptr: there is no such container.
    const ContainerState* container(const std::string& id) const;
  };

  /// A task whose container was created.
  struct LeftTask {
    base::Result<ContainerRecord> record;
    HeldHost* host = nullptr;               ///< nullptr: unknown
    const ContainerState* state = nullptr;  ///< nullptr: gone, or its host has not answered
    bool was_up = false;
    bool has_ended = false;
    bool can_be_adopted = false;
  };
  /// nullopt: the task has no container.
  std::optional<LeftTask> left_task(const TaskFolder& folder, const Hosts& hosts) const;

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
  bool has_asked_ = false;                          ///< ask() has ended
  bool has_swept_ = false;
};

}  // namespace muster::engine
