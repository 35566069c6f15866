// The nodes of the engine as the server last saw them, and which of them are cordoned.
//
// Plain values.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/schedule_view.h"
#include "engine/engine.h"
#include "job/job.h"
#include "job/node.h"
#include "schedule/model.h"

namespace muster::control {

using base::Result;

/// The resources of each pool, by its name.
using PoolTotals = std::map<std::string, schedule::Amounts>;

class NodeTable {
 public:
  /// How a new list of nodes differs from the one before.
  struct Difference {
    std::vector<std::string> gone;
    std::set<std::string> added;
    std::vector<std::string> changed;  ///< with the added ones
    /// Nodes that became silent or answer again; true: silent now.
    std::vector<std::pair<std::string, bool>> silence;
    bool pools = false;  ///< pools() has another answer
  };
  Difference replace(std::vector<engine::Node> nodes);

  const std::vector<engine::Node>& all() const { return nodes_; }  ///< by name
  /// nullptr: the node does not exist.
  const engine::Node* find(const std::string& name) const;
  /// kNotFound with the nearest name.
  Result<const engine::Node*> known(const std::string& name) const;
  std::vector<std::string> names() const;
  /// The pools that a job without a pool of its own may use: those with nodes, the default pool
  /// first. Without any node, the default pool.
  const std::vector<std::string>& pools() const { return pools_; }
  PoolTotals totals() const;

  void set_cordoned(const std::string& name, bool cordoned);
  const std::set<std::string>& cordoned() const { return cordoned_; }
  /// The machine of the node does not answer at present.
  bool is_silent(const std::string& name) const;
  /// The node is cordoned, closed or silent: no new task is placed there.
  bool is_closed(const std::string& name) const;
  /// Whether every node and device of these places is still there, and answers. Of anonymous GPUs,
  /// each node has at least as many as each place.
  bool has(const SeatPlaces& places) const;

 private:
  std::vector<engine::Node> nodes_;
  std::set<std::string> cordoned_;
  std::vector<std::string> pools_;
};

/// Whether a task of the job that has not ended is placed on the node.
bool runs_on(const job::Job& job, const std::string& node);

/// "runs", with the number of workers if that may change, the silent nodes of the job, and the
/// state that the cluster reports of its allocation.
job::Fact running_reason(const job::Job& job, const NodeTable& nodes,
                         const std::optional<job::SlurmState>& in_slurm);

}  // namespace muster::control
