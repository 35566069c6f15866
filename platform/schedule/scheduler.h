// The scheduler: it is told what changes, and answers with a plan.
//
//   Scheduler scheduler(options);
//   scheduler.set_node(node);
//   scheduler.set_projects(projects);
//   scheduler.submit(gang);
//   Plan plan = scheduler.plan(now);   // and from here on reckons with the plan being carried out
//
// Every pool is scheduled on its own: one waits, the others go on. Within a pool, actions come in
// KAI Scheduler's order: allocate, consolidate, reclaim, preempt, evict what is stale. A gang is
// placed whole (its minimum) or not at all. Nobody is evicted before a trial has shown that the
// gang it is for then starts.
//
// Incremental: plan() looks at what the changes since the last plan can affect. A scheduler that
// was told the same things in one go makes the same plan. Pure: no I/O, no clock, no threads, no
// randomness; the time comes in. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace muster::schedule {

/// Which parts of a cycle plan() runs. All of them, but in tests.
enum Actions : unsigned {
  kAllocate = 1,
  kConsolidate = 2,
  kReclaim = 4,
  kPreempt = 8,
  kEvictStale = 16,
  kAllActions = 31,
};

/// Who runs next. kFair is what the server does; the others are what users compare it with.
enum class Policy {
  kFair,      ///< projects by fair share; reclaim, preemption, consolidation; backfill
  kBackfill,  ///< one queue in order of submission, with reservations and backfill (EASY, Slurm)
  kFifo,      ///< one queue in order of submission, strictly
};

struct Options {
  Policy policy = Policy::kFair;
  Packing packing = Packing::kFragmentation;
  std::optional<Milliseconds> stale_grace{60'000};  ///< nothing: stale gangs are left alone
  int most_consolidation_victims = 16;
  double decay = 0;  ///< how much Project::past_use weighs in fair shares
  /// So many of the first blocked gangs of a pool, in the order they are served, get a reserved
  /// start.
  int reservations = 16;
  /// A gang that has waited so long has room kept for it even where nobody knows when those that
  /// run will end: what becomes free on the nodes chosen for it goes to nobody else. So no gang
  /// that could run waits longer than this and the rest of what runs on these nodes.
  Milliseconds patience{600'000};
  /// A gang that was evicted for another cannot evict in its turn before this has passed.
  Milliseconds cooldown{30'000};
  /// For so long after its submission nobody is evicted for a gang, and what becomes free does not
  /// go to less important gangs of its project while it waits for room: what ends by itself in a
  /// moment need not be cut off, and what would be evicted in a moment need not start.
  Milliseconds forbearance{0};
};

/// What would happen to a gang if it were submitted now; nothing does.
struct Forecast {
  std::vector<Start> start;         ///< one, where it starts at once
  std::vector<Eviction> evictions;  ///< that would make room for it
  Verdict verdict;                  ///< why it would wait
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
  /// What ran there is lost: the caller says ended(), lost() or requeue() of each gang.
  void remove_node(const std::string& name);
  /// All of them, replacing those before. Gangs of a project that is gone wait (kProject).
  void set_projects(std::vector<Project> projects);

  // The gangs.
  void submit(Gang gang);
  /// One that runs already: places by task, nothing where a task does not run.
  void adopt(Gang gang, const std::vector<std::optional<TaskPlace>>& places, Time started);
  /// It is over, or withdrawn; its room is free. Unknown ids are no error, here and below.
  void ended(const std::string& id);
  /// Evicted tasks are gone, and their room is free. A gang of which nothing is left waits again,
  /// in its old place in the order.
  void released(const std::string& id, const std::vector<int>& tasks);
  /// A task ended by itself while its gang goes on. Its room is free, its place is open.
  void lost(const std::string& id, int task, Time now);
  /// A gang that was started does not run: nothing of it holds room any more, and it waits again,
  /// until `not_before` at least.
  void requeue(const std::string& id, std::optional<Time> not_before = std::nullopt);

  Plan plan(Time now, unsigned actions = kAllActions);

  // Questions. None changes anything.

  /// Why it could never run, whatever ends: for refusing it at submission.
  std::optional<Verdict> refuses(const Gang& gang) const;
  Verdict explain(const std::string& id, Time now) const;
  Forecast forecast(const Gang& gang, Time now) const;
  /// Ids of those that wait, in the order in which they would be served as things are.
  std::vector<std::string> queue() const;
  /// kNothing where the project is unknown. Summed over pools, or of one.
  Standing standing(const std::string& project, const std::string& pool = {}) const;
  /// Thousandths free by device of a node, now; empty for an unknown node.
  std::vector<int> free_devices(const std::string& node) const;
  Amounts free(const std::string& node) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::schedule
