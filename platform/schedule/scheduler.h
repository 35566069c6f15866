// The scheduler: the caller reports changes, and plan() returns a plan.
//
//   Scheduler scheduler(options);
//   scheduler.set_node(node);
//   scheduler.set_projects(projects);
//   scheduler.submit(gang);
//   Plan plan = scheduler.plan(now);   // the scheduler now assumes that the plan is carried out
//
// Pools are scheduled independently. In a pool, the actions run in KAI Scheduler's order: allocate,
// consolidate, reclaim, preempt, evict stale gangs. A gang is placed whole (its minimum) or not at
// all. No gang is evicted before a trial has shown that another gang then starts.
//
// Incremental: plan() examines only what changes since the last plan can affect. The plan is the
// same as that of a new scheduler with the same state. Pure: no I/O, clock, threads or randomness.
// Not thread-safe.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace muster::schedule {

/// The actions that plan() runs; tests run some of them.
enum Actions : unsigned {
  kAllocate = 1,
  kConsolidate = 2,
  kReclaim = 4,
  kPreempt = 8,
  kEvictStale = 16,
  kAllActions = 31,
};

/// The order of gangs. Servers use kFair; `muster simulate` compares it with the others.
enum class Policy {
  kFair,      ///< projects by fair share; reclaim, preemption, consolidation; backfill
  kBackfill,  ///< one queue in order of submission, with reservations and backfill (EASY, Slurm)
  kFifo,      ///< one queue in order of submission, strictly
};

struct Options {
  Policy policy = Policy::kFair;
  Packing packing = Packing::kFragmentation;
  std::optional<Milliseconds> stale_grace{60'000};  ///< nothing: stale gangs are not evicted
  int most_consolidation_victims = 16;
  double decay = 0;  ///< weight of Project::past_use in fair shares
  /// Number of blocked gangs of a pool that get a reservation, in serve order.
  int reservations = 16;
  /// After this wait, a gang gets a reservation even if the ends of running gangs are unknown: no
  /// other gang gets what it needs on the chosen nodes. So no gang that fits waits
  /// longer than this time plus the run time of the tasks on these nodes.
  Milliseconds patience{600'000};
  /// How long a gang that was evicted for another cannot evict others.
  Milliseconds cooldown{30'000};
  /// The time after its submission in which no other gang is evicted for a gang. While it waits for
  /// resources, resources that become free do not go to less important gangs of its project. So
  /// gangs that end soon are not evicted, and gangs that would soon be evicted do not start.
  Milliseconds forbearance{0};
};

/// What would happen to a gang if it were submitted now.
struct Forecast {
  std::vector<PlannedStart> start;  ///< one entry if it would start at once
  std::vector<Eviction> evictions;  ///< needed for its start
  WaitVerdict verdict;              ///< why it would wait
  Standing project_now;
  Standing project_then;
};

class Scheduler {
 public:
  explicit Scheduler(Options options = {});
  ~Scheduler();
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;

  // The cluster.
  void set_node(const Node& node);
  /// The tasks of the node are lost: the caller calls ended(), lost() or requeue() for each gang.
  void remove_node(const std::string& name);
  /// Replaces all projects. Gangs of a removed project wait (kProject).
  void set_projects(std::vector<Project> projects);

  // The gangs.
  /// A gang with the same id is replaced: it waits anew, and evicts no gang sooner for it.
  void submit(Gang gang);
  /// Replaces the pools that a gang may use. A waiting gang keeps its promise, its reservation in a
  /// pool that it may still use, and the time before which it does not start.
  void set_pools(const std::string& id, std::vector<std::string> pools);
  /// Adds a running gang. `places` by task; nothing for tasks that do not run. `leaving`: tasks
  /// among them that were evicted before; released() or ended() follows. Call it again with the same
  /// places when a node was set on which tasks of the gang run: the gang keeps its promises.
  void adopt(Gang gang, const std::vector<std::optional<TaskPlace>>& places, Time started,
             const std::vector<int>& leaving = {});
  /// The gang has ended or was withdrawn; its resources are free. Unknown ids are ignored, here and
  /// below.
  void ended(const std::string& id);
  /// All tasks of a running gang are being stopped, and not for another gang; ended() or requeue()
  /// follows. Until `ends_by` (of the first call for the gang), no gang is evicted for what they will
  /// free. They count against limits and quotas until they have ended.
  void leaves(const std::string& id, Time ends_by);
  /// Evicted tasks have ended; their resources are free. A gang without tasks waits again, in its
  /// old place in the order.
  void released(const std::string& id, const std::vector<int>& tasks);
  /// A task has ended while its gang continues. Its resources are free, and it may start again.
  void lost(const std::string& id, int task, Time now);
  /// A started gang does not run: its resources are free, and it waits again, at least until
  /// `not_before`.
  void requeue(const std::string& id, std::optional<Time> not_before = std::nullopt);

  Plan plan(Time now, unsigned actions = kAllActions);

  // Questions; they change nothing.

  /// Why the gang can never run; nothing if it can. For refusing it at submission.
  std::optional<WaitVerdict> refuses(const Gang& gang) const;
  WaitVerdict explain(const std::string& id, Time now) const;
  Forecast forecast(const Gang& gang, Time now) const;
  /// Calls `visit` with the ids of waiting gangs in serve order, until it returns false. The first
  /// gangs of a long queue cost little; `visit` must not change the scheduler.
  void each_waiting(const std::function<bool(const std::string& id)>& visit) const;
  /// The first `most` of them.
  std::vector<std::string> queue(size_t most = std::numeric_limits<size_t>::max()) const;
  /// The number of gangs before this one; nothing: it does not wait.
  std::optional<size_t> place_in_queue(const std::string& id) const;
  /// Of one pool, or summed over all pools; zero for an unknown project. The sum has the quotas and
  /// limits of pools with nodes, and counts a gang that waits in several pools once.
  Standing standing(const std::string& project, const std::string& pool = {}) const;
  /// Free thousandths of each GPU of a node, now; empty for an unknown node.
  std::vector<int> free_devices(const std::string& node) const;
  Amounts free(const std::string& node) const;
  /// Whether the node has anonymous GPUs, and fewer than its tasks hold together.
  bool lacks_gpus(const std::string& node) const;
  /// Whether anything that is kept from plan to plan differs from the same made anew. For tests;
  /// costs more than a plan.
  bool is_stale() const;
  /// Whether the books of the nodes differ from the tasks, promises and reservations. For tests.
  bool has_wrong_node_books() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::schedule
