#include "schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "schedule/cluster.h"
#include "schedule/cycle.h"
#include "schedule/gang_books.h"
#include "schedule/patience.h"
#include "schedule/reservation.h"

namespace muster::schedule {

Scheduler::Scheduler(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
Scheduler::~Scheduler() = default;
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;

namespace {

bool is_above_a_limit(const Ledger& ledger, ProjectIndex leaf) {
  for (ProjectIndex level = leaf; level != kNoProject; level = ledger.parent(level)) {
    const Standing standing = ledger.standing(level);
    if (!standing.allocated.within(standing.limit)) return true;
  }
  return false;
}

/// A limit that was lowered below the running amount blocks promised starts.
void take_back_above_limits(Pool& pool) {
  const std::vector<GangState*> promised(pool.promised.begin(), pool.promised.end());
  for (GangState* const gang : promised) {
    if (!is_above_a_limit(pool.ledger, entry_in(*gang, pool).leaf)) continue;
    drop_promise(*gang);
    refresh(*gang);
  }
}

/// What a part of a GPU's memory counts in the ledger depends on the smallest GPU of the pool.
void charge_all_anew(Cluster& cluster) {
  for (const auto& [name, pool] : cluster.pools) {
    const int64_t smallest = pool->nodes.smallest_gpu_memory();
    if (std::exchange(pool->charged_by_memory, smallest) == smallest) continue;
    for (const auto& [number, gang] : cluster.by_number) {
      if (is_listed(*gang, *pool) && charge_anew(*gang, *pool)) refresh(*gang);
    }
    take_back_above_limits(*pool);
  }
}

}  // namespace

void Scheduler::set_node(const Node& node) {
  set_cluster_node(*state_, node);
  charge_all_anew(*state_);
}

void Scheduler::remove_node(const std::string& name) {
  remove_cluster_node(*state_, name);
  charge_all_anew(*state_);
}

void Scheduler::set_projects(std::vector<Project> projects) {
  if (projects == state_->projects) return;
  state_->projects = std::move(projects);
  state_->project_named.clear();
  state_->has_min_runtimes = false;
  for (const Project& project : state_->projects) {
    state_->project_named.emplace(project.name, project);
    state_->has_min_runtimes = state_->has_min_runtimes ||
                               project.reclaim_min_runtime.count() > 0 ||
                               project.preempt_min_runtime.count() > 0;
  }
  for (const auto& [name, pool] : state_->pools) {
    muster::schedule::set_projects(*pool, state_->projects);
  }
  for (const auto& [number, gang] : state_->by_number) {
    for (PoolEntry& entry : gang->entries) find_leaf(*gang, entry);
    refresh(*gang);
  }
  for (const auto& [name, pool] : state_->pools) take_back_above_limits(*pool);
}

void Scheduler::submit(Gang gang) {
  refresh(state_->enter_gang(std::move(gang)));
}

void Scheduler::set_pools(const std::string& id, std::vector<std::string> pools) {
  if (GangState* const gang = state_->find(id)) state_->set_pools(*gang, std::move(pools));
}

namespace {

/// The pool of the first known node of the gang.
Pool& home_of(const Cluster& cluster, const GangState& gang,
              const std::vector<std::optional<TaskPlace>>& places) {
  for (const auto& place : places) {
    if (!place) continue;
    const auto node = cluster.pool_of_node.find(place->node);
    const bool is_known = node != cluster.pool_of_node.end() && is_listed(gang, *node->second);
    if (is_known) return *node->second;
  }
  return *gang.entries.front().pool;
}

/// Books the task on its node, which may have changed its pool since the gang was placed: the gang
/// then counts in the ledger of its home and holds resources of another pool.
void occupy_place(const Cluster& cluster, GangState& gang, Pool& home, int task,
                  const TaskPlace& place, const Claim& claim) {
  const auto known = cluster.pool_of_node.find(place.node);
  Pool& held_in = known == cluster.pool_of_node.end() ? home : *known->second;
  // A task on an unknown node is booked in the ledger, and holds no resources of a node.
  occupy(gang, home, task, held_in, held_in.nodes.booking_of(place, claim).value_or(Booking{}));
}

bool runs(const GangState& gang, int task) {
  return task >= 0 && static_cast<size_t>(task) < gang.tasks.size() &&
         gang.tasks[static_cast<size_t>(task)].phase == TaskPhase::kRunning;
}

/// `before`: the tasks of the same gang when fewer of its nodes were known. From now on, a promise
/// waits for its resources only, and not for a number of leaving tasks.
void renew_promises(GangState& gang, Pool& home, const std::vector<TaskState>& before) {
  for (size_t task = 0; task < before.size() && task < gang.tasks.size(); ++task) {
    TaskState& state = gang.tasks[task];
    if (!before[task].promised || state.phase == TaskPhase::kRunning) continue;
    state.promised = before[task].promised;
    home.nodes.reserve(*state.promised);
    gang.home = &home;
  }
}

}  // namespace

void Scheduler::adopt(Gang gang, const std::vector<std::optional<TaskPlace>>& places, Time started,
                      const std::vector<int>& leaving) {
  const GangState* const known = state_->find(gang.id);
  Pool* const home_before = known == nullptr ? nullptr : known->home;
  const std::vector<TaskState> before = known == nullptr ? std::vector<TaskState>{} : known->tasks;
  GangState& adopted = state_->enter_gang(std::move(gang));
  const std::vector<int> groups = groups_of_tasks(adopted.gang);
  Pool& home = home_of(*state_, adopted, places);
  for (size_t task = 0; task < adopted.tasks.size() && task < places.size(); ++task) {
    if (!places[task]) continue;
    const Claim& claim = adopted.gang.groups[static_cast<size_t>(groups[task])].claim;
    occupy_place(*state_, adopted, home, static_cast<int>(task), *places[task], claim);
    adopted.started = started;
  }
  for (const int task : leaving) {
    if (runs(adopted, task)) begin_to_leave(adopted, task);
  }
  if (home_before == &home) renew_promises(adopted, home, before);
  refresh(adopted);
}

void Scheduler::ended(const std::string& id) {
  if (GangState* const gang = state_->find(id); gang != nullptr) state_->forget_gang(*gang);
}

void Scheduler::leaves(const std::string& id, Time ends_by) {
  GangState* const gang = state_->find(id);
  if (gang == nullptr) return;
  if (!gang->ends_by) gang->ends_by = ends_by;
  if (has_promise(*gang)) drop_promise(*gang);
  for (size_t task = 0; task < gang->tasks.size(); ++task) {
    if (gang->tasks[task].phase != TaskPhase::kRunning) continue;
    begin_to_leave(*gang, static_cast<int>(task));
    gang->tasks[task].counts_until_end = true;
  }
  refresh(*gang);
}

void Scheduler::released(const std::string& id, const std::vector<int>& tasks) {
  GangState* const gang = state_->find(id);
  if (gang == nullptr) return;
  for (const int task : tasks) {
    if (task < 0 || static_cast<size_t>(task) >= gang->tasks.size()) continue;
    state_->has_left(vacate(*gang, task));
  }
  refresh(*gang);
}

void Scheduler::lost(const std::string& id, int task, Time now) {
  GangState* const gang = state_->find(id);
  if (gang == nullptr || task < 0 || static_cast<size_t>(task) >= gang->tasks.size()) return;
  state_->has_left(vacate(*gang, task));
  if (is_below_minimum(*gang) && !gang->stale_since) gang->stale_since = now;
  refresh(*gang);
}

void Scheduler::requeue(const std::string& id, std::optional<Time> not_before) {
  GangState* const gang = state_->find(id);
  if (gang == nullptr) return;
  state_->vacate_all(*gang);
  gang->reported_reason.reset();
  gang->not_before = not_before;
  if (not_before) state_->delayed.insert({*not_before, gang->number, gang});
  refresh(*gang);
}

namespace {

void wake_delayed(Cluster& cluster, Time now) {
  while (!cluster.delayed.empty() && std::get<Time>(*cluster.delayed.begin()) <= now) {
    GangState& gang = *std::get<GangState*>(*cluster.delayed.begin());
    cluster.delayed.erase(cluster.delayed.begin());
    gang.not_before.reset();
    refresh(gang);
  }
}

/// The pools that have changed, or whose time to be planned again has come.
std::vector<Pool*> pools_to_plan(Cluster& cluster, Time now) {
  std::vector<Pool*> pools;
  for (const auto& [name, pool] : cluster.pools) {
    const bool is_due = pool->again_at && *pool->again_at <= now;
    if (is_due) ++pool->epoch;  // an action that failed before may be allowed now
    if (pool->dirty || is_due || pool->unfinished) pools.push_back(pool.get());
  }
  return pools;
}

void prepare(Pool& pool, uint64_t plan) {
  pool.plan = plan;
  pool.dirty = true;
  pool.again_at.reset();
  settle_books(pool);
  if (pool.usual.has_changed_enough()) pool.nodes.set_usual_claims(pool.usual.take());
  for (const NodeIndex node : pool.grown) settle_gpu_numbers(pool, node);
  review_reservations(pool);
  forget_shortages(pool);
}

/// A gang that is being stopped and does not end is awaited no longer.
void note_overdue(const Cycle& cycle, Pool& pool) {
  const std::vector<GangState*> ending(pool.ending.begin(), pool.ending.end());
  for (GangState* const gang : ending) {
    if (gang->overdue || !gang->ends_by) continue;
    if (cycle.now < *gang->ends_by) {
      pool.look_again_at(*gang->ends_by);
      continue;
    }
    gang->overdue = true;
    refresh(*gang);
  }
}

void allocate_all(Cycle& cycle, const std::vector<Pool*>& pools) {
  for (Pool* const pool : pools) allocate(cycle, *pool, true);
  for (Pool* const pool : pools) {
    if (pool->deferred) allocate(cycle, *pool, false);
  }
  for (Pool* const pool : pools) lose_patience(cycle, *pool);
}

void make_room(Cycle& cycle, Pool& pool, unsigned actions) {
  if (cycle.options.policy == Policy::kFair) {
    pool.unfinished = false;
    cycle.trials_left = kTrialsInAPlan;
    if ((actions & kConsolidate) != 0) consolidate(cycle, pool);
    cycle.trials_left = std::max(cycle.trials_left, kLeastTrialsOfAnAction);
    if ((actions & kReclaim) != 0) reclaim(cycle, pool);
    cycle.trials_left = std::max(cycle.trials_left, kLeastTrialsOfAnAction);
    if ((actions & kPreempt) != 0) preempt(cycle, pool);
  }
  if ((actions & kEvictStale) != 0) evict_stale(cycle, pool);
}

}  // namespace

Plan Scheduler::plan(Time now, unsigned actions) {
  Cycle cycle = state_->cycle(now, ++state_->plans);
  state_->waited.clear();
  state_->drop_unused_pools();
  finish_moves(*state_);
  charge_all_anew(*state_);
  wake_delayed(*state_, now);
  const std::vector<Pool*> pools = pools_to_plan(*state_, now);
  for (Pool* const pool : pools) prepare(*pool, cycle.number);
  for (Pool* const pool : pools) note_overdue(cycle, *pool);
  for (Pool* const pool : pools) keep_promises(cycle, *pool);
  if ((actions & kAllocate) != 0) allocate_all(cycle, pools);
  for (Pool* const pool : pools) make_room(cycle, *pool, actions);
  for (Pool* const pool : pools) {
    report_waits(cycle, *pool);
    drop_empty_classes(*pool);
    end_plan(*pool);
    pool->dirty = false;
    pool->planned_at = now;
  }
  Plan& plan = cycle.plan;
  if (!state_->delayed.empty()) plan.again_at = std::get<Time>(*state_->delayed.begin());
  for (const auto& [name, pool] : state_->pools) {
    if (pool->unfinished) plan.again_at = now;
    if (pool->again_at && (!plan.again_at || *pool->again_at < *plan.again_at)) {
      plan.again_at = pool->again_at;
    }
  }
  return std::move(cycle.plan);
}

}  // namespace muster::schedule
