// The state of the scheduler: pools, projects, gangs, and the operations that concern several of
// them.
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

/// Gangs with equal requests have the same shape: if one of them cannot be placed, neither can the
/// others. So the cost of a plan depends on the number of shapes, not of waiting gangs.
///
/// Not thread-safe.
class ShapeTable {
 public:
  /// The number of the gang's shape, from 1. The shape is everything of the gang except its id,
  /// name, project, priority and times. Release it with drop().
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
  std::unordered_map<std::string, std::unique_ptr<GangState>>
      gangs;  ///< by id; never iterated over, so that the order cannot matter
  std::map<uint64_t, GangState*> by_number;
  std::map<std::string, std::unique_ptr<Pool>> pools;
  std::map<std::string, Pool*> pool_of_node;
  std::map<std::string, Node> moving;  ///< nodes that change their pool when no task runs on them
  std::vector<Project> projects;
  std::unordered_map<std::string, Project> project_named;    ///< by name; never iterated over
  bool has_min_runtimes = false;                             ///< of any project
  std::set<std::tuple<Time, uint64_t, GangState*>> delayed;  ///< by Gang::not_before
  /// GangState::waits_since of the gangs that have left since the last plan: a gang that is submitted
  /// again at once continues to wait.
  std::unordered_map<std::string, Time> waited;
  ShapeTable shapes;
  uint64_t next_number = 1;
  uint64_t plans = 0;

  Pool& pool_of(const std::string& name);
  GangState* find(const std::string& id) const;
  /// Adds a gang to each of its pools. None of its tasks runs. Replaces the gang with this id, which
  /// still evicts no gang before its time.
  GangState& enter_gang(Gang gang);
  /// Replaces the pools that the gang may use. It keeps what it holds, was promised or has reserved
  /// in a pool that it may still use, and stays in its home.
  void set_pools(GangState& gang, std::vector<std::string> names);
  /// A gang that is not entered anywhere, for questions. The caller drops its shape.
  std::unique_ptr<GangState> make_guest(Gang gang);
  void forget_gang(GangState& gang);
  /// Takes a gang that holds nothing out of its pools.
  void leave_pools(GangState& gang);
  /// Gangs may name any pool. One that never had a node goes with the last gang that names it.
  void drop_unused_pools();
  /// Frees all that the gang holds or was promised.
  void vacate_all(GangState& gang);
  /// Call when a leaving task has ended: the gang that it made room for waits for one task less.
  void has_left(const MakesRoomFor& whom);
};

/// Whether the gang may use `pool`.
bool is_listed(const GangState& gang, const Pool& pool);

/// Adds a node, or changes the node of this name. A node that changes its pool while gangs run on
/// it gets no new tasks, and moves when they have ended.
void set_cluster_node(Cluster& cluster, const Node& node);
void remove_cluster_node(Cluster& cluster, const std::string& name);
void finish_moves(Cluster& cluster);
/// On a node with anonymous GPUs, tasks and promises with numbers that the node does not have get
/// free ones. Call when the node has changed, or resources became free there.
void settle_gpu_numbers(Pool& pool, NodeIndex node);

/// The private state of Scheduler, for the files that implement it.
struct Scheduler::State : Cluster {
  /// A cycle with an empty plan.
  Cycle cycle(Time now, uint64_t number) const {
    return {.options = options,
            .projects = project_named,
            .has_min_runtimes = has_min_runtimes,
            .now = now,
            .number = number,
            .plan = {},
            .trials_left = 0};
  }
};

}  // namespace muster::schedule
