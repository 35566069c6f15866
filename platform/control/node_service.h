// The nodes of the engine as callers see them, and the effects of their changes: the scheduler gets
// the change, tasks on lost nodes are lost, and drained nodes are emptied.
//
// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "access/audit.h"
#include "control/attempts.h"
#include "control/journal.h"
#include "control/node_table.h"
#include "control/placement.h"
#include "control/scheduler_book.h"
#include "engine/engine.h"

namespace muster::control {

class NodeService {
 public:
  struct Dependencies {
    engine::Engine& engine;
    const base::Clock& clock;
    Journal& journal;
    NodeTable& nodes;
    SchedulerBook& book;
    Attempts& attempts;
    Placement& placement;
    std::function<void()> changed;  ///< the nodes are others, or have changed
    std::function<void()> wake;     ///< the scheduler should plan again soon
  };
  explicit NodeService(Dependencies parts);

  /// As stored by an earlier server.
  void load(const std::vector<std::string>& cordoned);
  /// Reads the engine's present nodes.
  void read();

  std::vector<job::Node> list() const;  ///< by name
  /// kNotFound with the nearest name.
  Result<job::Node> find(const std::string& name) const;
  /// No new task is placed on a cordoned node. A drained node is cordoned, and its tasks are
  /// evicted and queued again. A cordon lasts over restarts. `by` is the caller, for the audit log.
  Result<job::Node> cordon(const std::string& name, const access::Actor& by = {});
  Result<job::Node> uncordon(const std::string& name, const access::Actor& by = {});
  Result<job::Node> drain(const std::string& name, const access::Actor& by = {});

 private:
  /// By node: the tasks there, the tasks of one job in a row.
  using TasksByNode =
      std::map<std::string, std::vector<std::pair<const job::Job*, const job::Task*>>>;
  TasksByNode tasks_by_node() const;
  job::Node view_of(const engine::Node& node, const TasksByNode& tasks) const;
  void give_to_scheduler(const engine::Node& node);
  void lose(const std::string& name);
  void release(const std::string& name);
  std::vector<access::AuditRecord> cordon_record(const std::string& name, bool cordoned,
                                                 const access::Actor& by) const;
  Result<job::Node> set_cordon(const std::string& name, bool cordoned,
                               std::vector<access::AuditRecord> audit);

  Dependencies parts_;
  std::shared_ptr<void> watch_;
};

}  // namespace muster::control
