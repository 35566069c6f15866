// Room for a gang by moving others together. Nobody ends for it: all that are moved start again
// elsewhere at once. So it can only help where there is room enough in all, in too many places.
#include <algorithm>
#include <numeric>

#include "schedule/evict.h"

namespace muster::schedule {

namespace {

// Every node is looked at: one such search stands for so many trials.
constexpr int kTrialsOfOneSearch = 32;
// How many nodes are tried as the one to empty.
constexpr size_t kMostNodesTried = 32;

/// A node with what it lacks for one more task, and who runs there, the first to move first.
struct ClearableNode {
  int64_t lacks_gpu = 0;
  int64_t lacks_cpu = 0;
  int64_t lacks_memory = 0;
  std::vector<size_t> rank_of_movers;
  NodeIndex node = -1;

  auto operator<=>(const ClearableNode&) const = default;
};

/// The claim that is hardest to place.
Claim hardest_claim(const Asking& asking) {
  Claim hardest;
  for (size_t group = 0; group < asking.counts.size(); ++group) {
    if (asking.counts[group] == 0) continue;
    const Claim& claim = asking.gang.gang.groups[group].claim;
    const auto weight = [](const Claim& one) {
      return std::tuple(one.gpus, one.gpu_share_milli, one.gpu_memory_bytes, one.cpu_milli,
                        one.memory_bytes);
    };
    if (weight(hardest) < weight(claim)) hardest = claim;
  }
  return hardest;
}

class Consolidation {
 public:
  Consolidation(const Cycle& cycle, Pool& pool, Trial& trial, const Asking& asking)
      : cycle_(cycle), pool_(pool), trial_(trial), asking_(asking), claim_(hardest_claim(asking)) {}

  std::optional<Decision> find() {
    if (MakeRoom(trial_, cycle_.options, pool_, asking_, false).fits_already()) return std::nullopt;
    const std::vector<ClearableNode> candidates = find_candidates();
    for (size_t first = 0; first < std::min(candidates.size(), kMostNodesTried); ++first) {
      trial_.rollback(0);
      if (std::optional<Decision> decision = find_from(candidates, first)) return decision;
    }
    return std::nullopt;
  }

 private:
  bool may_move(const GangState& gang) const {
    return gang.core && &gang != &asking_.gang &&
           !is_protected(cycle_, pool_, gang, &Project::reclaim_min_runtime);
  }

  std::vector<ClearableNode> find_candidates() const {
    std::vector<ClearableNode> candidates;
    for (const NodeIndex node : pool_.nodes.all()) {
      const Amounts free = pool_.nodes.free(node, Room::kLater);
      ClearableNode one{
          .lacks_gpu = claim_.gpus * int64_t{kWholeGpu} + claim_.gpu_share_milli - free.gpu_milli,
          .lacks_cpu = claim_.cpu_milli - free.cpu_milli,
          .lacks_memory = claim_.memory_bytes - free.memory_bytes,
          .node = node};
      Amounts movable;
      for (const Tenant& tenant : pool_.tenants_of(node)) {
        const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
        if (task.phase != TaskPhase::kRunning || !may_move(*tenant.gang)) continue;
        movable += {int64_t{task.held.share_milli} * __builtin_popcountll(task.held.devices),
                    task.held.cpu_milli, task.held.memory_bytes};
        one.rank_of_movers.push_back(rank_of(*tenant.gang));
      }
      // A node where nobody can be moved gains nothing.
      if (one.rank_of_movers.empty()) continue;
      if (!Amounts{one.lacks_gpu, one.lacks_cpu, one.lacks_memory}.within(movable)) continue;
      one.lacks_gpu = std::max<int64_t>(one.lacks_gpu, 0);
      one.lacks_cpu = std::max<int64_t>(one.lacks_cpu, 0);
      one.lacks_memory = std::max<int64_t>(one.lacks_memory, 0);
      std::sort(one.rank_of_movers.begin(), one.rank_of_movers.end());
      candidates.push_back(std::move(one));
    }
    // Each of the nodes that are tried may need some of those behind it, but no more than may move.
    const size_t most =
        kMostNodesTried + static_cast<size_t>(cycle_.options.most_consolidation_victims);
    const auto middle =
        candidates.begin() + static_cast<std::ptrdiff_t>(std::min(candidates.size(), most));
    std::partial_sort(candidates.begin(), middle, candidates.end());
    candidates.erase(middle, candidates.end());
    return candidates;
  }

  /// Smaller for those who are to move first: the least important, of equals the youngest.
  size_t rank_of(const GangState& gang) const {
    constexpr uint64_t kMostGangs = uint64_t{1} << 40;
    const auto priority = static_cast<uint64_t>(std::clamp(gang.gang.priority, 0, 1 << 20));
    return priority * kMostGangs + (kMostGangs - std::min(gang.number, kMostGangs));
  }

  std::optional<Decision> find_from(const std::vector<ClearableNode>& candidates, size_t first) {
    MakeRoom room(trial_, cycle_.options, pool_, asking_, false);
    const auto most = static_cast<size_t>(cycle_.options.most_consolidation_victims);
    moved_.clear();
    for (size_t i = first; i < candidates.size(); ++i) {
      for (Unit& unit : movers_on(candidates[i].node)) {
        if (room.evicted() >= most) return std::nullopt;
        for (const int task : unit.tasks) moved_.insert({unit.gang->number, task});
        room.evict(std::move(unit), false);
        if (!room.is_worth_a_try()) continue;
        if (std::optional<Decision> decision = room.conclude()) return decision;
      }
      const bool is_single = std::accumulate(asking_.counts.begin(), asking_.counts.end(), 0) == 1;
      if (is_single) return std::nullopt;
    }
    return std::nullopt;
  }

  /// Those on the node that may move, the first to move first. A task beyond its gang's minimum
  /// moves alone; any other with all of its gang.
  std::vector<Unit> movers_on(NodeIndex node) const {
    std::vector<std::pair<size_t, Tenant>> sorted;
    for (const Tenant& tenant : pool_.tenants_of(node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      const bool was_moved = moved_.contains({tenant.gang->number, tenant.task});
      if (task.phase != TaskPhase::kRunning || !may_move(*tenant.gang) || was_moved) continue;
      sorted.emplace_back(rank_of(*tenant.gang), tenant);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
      return std::pair(left.first, right.second.task) < std::pair(right.first, left.second.task);
    });
    std::vector<Unit> units;
    std::set<std::pair<uint64_t, int>> taken = moved_;
    for (const auto& [rank, tenant] : sorted) {
      GangState& gang = *tenant.gang;
      if (taken.contains({gang.number, tenant.task})) continue;
      const bool alone = is_beyond_minimum(gang, tenant.task, taken);
      std::vector<int> tasks;
      for (size_t task = 0; task < gang.tasks.size(); ++task) {
        const int index = static_cast<int>(task);
        if (gang.tasks[task].phase != TaskPhase::kRunning) continue;
        if (alone ? index != tenant.task : taken.contains({gang.number, index})) continue;
        tasks.push_back(index);
      }
      for (const int task : tasks) taken.insert({gang.number, task});
      units.push_back(unit_of(gang, pool_, std::move(tasks), !alone));
    }
    return units;
  }

  static bool is_beyond_minimum(const GangState& gang, int task,
                                const std::set<std::pair<uint64_t, int>>& taken) {
    const std::vector<int> groups = groups_of_tasks(gang.gang);
    const int group = groups[static_cast<size_t>(task)];
    int staying = 0;
    for (size_t other = 0; other < gang.tasks.size(); ++other) {
      staying += groups[other] == group && gang.tasks[other].phase == TaskPhase::kRunning &&
                 !taken.contains({gang.number, static_cast<int>(other)});
    }
    return staying > gang.gang.groups[static_cast<size_t>(group)].minimum;
  }

  const Cycle& cycle_;
  Pool& pool_;
  Trial& trial_;
  const Asking& asking_;
  Claim claim_;
  std::set<std::pair<uint64_t, int>> moved_;  ///< gang and task, on the nodes before
};

bool may_consolidate(const Pool& pool, const WaitClass& waiting) {
  return !waiting.waiters.empty() && waiting.key.preemptible && !waiting.only_grows() &&
         waiting.ask->consolidation_failed != pool.epoch && has_room_in_all(pool, waiting.charge) &&
         !pool.ledger.refuses(waiting.leaf, waiting.charge, waiting.key.preemptible);
}

bool try_consolidate(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  const std::optional<Decision> decision = Consolidation(cycle, pool, trial, asking).find();
  if (!decision) return false;
  carry_out(cycle, pool, trial, asking, *decision, EvictionCause::kMoved);
  return true;
}

}  // namespace

std::optional<Decision> find_to_move(const Cycle& cycle, Pool& pool, Trial& trial,
                                     const Asking& asking) {
  const Gang& gang = asking.gang.gang;
  if (!gang.preemptible || !has_room_in_all(pool, asking.charge) ||
      pool.ledger.refuses(asking.entry.leaf, asking.charge, true)) {
    return std::nullopt;
  }
  return Consolidation(cycle, pool, trial, asking).find();
}

void consolidate(Cycle& cycle, Pool& pool) {
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (may_consolidate(pool, *waiting)) order.add(*waiting);
    }
  }
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang =
        may_consolidate(pool, *waiting) ? first_that_may_evict(cycle, pool, *waiting) : nullptr;
    if (gang != nullptr && cycle.trials_left <= 0) return;
    if (gang != nullptr) cycle.trials_left -= kTrialsOfOneSearch;
    if (gang != nullptr && try_consolidate(cycle, pool, *gang, *waiting)) {
      order.add(*waiting);
      continue;
    }
    if (gang != nullptr) waiting->ask->consolidation_failed = pool.epoch;
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
