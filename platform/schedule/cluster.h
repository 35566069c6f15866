// All that the scheduler knows: pools, projects, gangs. What its methods share.
//
// Plain data with the few operations that span gangs and pools.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "schedule/cycle.h"
#include "schedule/model.h"
#include "schedule/pool.h"
#include "schedule/scheduler.h"

namespace muster::schedule {

// Gangs that ask for the same have one shape: what one of them cannot have, the others cannot
// either. So a hundred thousand waiting gangs cost as much as the few shapes among them.
//
// Not thread-safe.

class ShapeTable {
 public:
  /// The number of the gang's shape, from 1: all of the gang but its id, name, project, priority
  /// and times. To be given back by drop().
  uint64_t take(const Gang& gang);
  void drop(uint64_t shape);

 private:
  struct Shape {
    uint64_t number = 0;
    int gangs = 0;
  };
  std::unordered_map<std::string, Shape> shapes_;
  std::unordered_map<uint64_t, std::string> names_;
  uint64_t next_ = 1;
};

struct Cluster {
  Options options;
  std::unordered_map<std::string, std::unique_ptr<GangState>> gangs;  ///< for looking up only
  std::map<uint64_t, GangState*> by_number;
  std::map<std::string, std::unique_ptr<Pool>> pools;
  std::map<std::string, Pool*> pool_of_node;
  std::map<std::string, Node> moving;  ///< to another pool, once nothing runs on them
  std::vector<Project> projects;
  std::unordered_map<std::string, Project> project_named;    ///< for looking up only
  std::set<std::tuple<Time, uint64_t, GangState*>> delayed;  ///< by Gang::not_before
  ShapeTable shapes;
  uint64_t next_number = 1;
  uint64_t plans = 0;

  Pool& pool_of(const std::string& name);
  GangState* find(const std::string& id) const;
  /// With its place in each of its pools; nothing of it runs.
  GangState& enter_gang(Gang gang);
  /// One like it that nobody gets to know of; for questions. Its shape is to be dropped.
  std::unique_ptr<GangState> make_guest(Gang gang);
  void forget_gang(GangState& gang);
  /// Frees all that it holds, or was promised.
  void vacate_all(GangState& gang);
  /// A task that was leaving has gone: whoever it made room for is one nearer.
  void has_left(const MakesRoomFor& whom);
};

/// Whether the gang may use `pool`.
bool is_listed(const GangState& gang, const Pool& pool);

/// Adds a node, or changes the one of its name. One that changes its pool while gangs run on it
/// takes nothing new until they have gone, and moves then.
void set_cluster_node(Cluster& cluster, const Node& node);
void remove_cluster_node(Cluster& cluster, const std::string& name);
void finish_moves(Cluster& cluster);

// What stands behind the Scheduler's interface; for the files that implement it.

struct Scheduler::State : Cluster {
  /// The plan of this number, with nothing in it yet.
  Cycle cycle(Time now, uint64_t number) const {
    return {.options = options,
            .projects = project_named,
            .now = now,
            .number = number,
            .plan = {},
            .trials_left = 0};
  }
};

}  // namespace muster::schedule
