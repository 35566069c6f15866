// Consolidation: moving gangs so that another gang fits. No gang ends for it: each moved gang
// starts again elsewhere at once. So it helps only if the free resources suffice in total but are
// spread over too many nodes.
//
// There are two searches; the second runs if the first finds nothing. The first moves the gangs of
// a node to free resources elsewhere. The second searches for chains of two moves: one unit leaves
// the node and takes the place of another unit, which moves to free resources. Both searches are
// bounded by a number of nodes and of trials.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "schedule/eviction.h"

namespace muster::schedule {

namespace {

// Every node is looked at: one such search stands for so many trials. A gang that no move can help
// counts as one trial.
constexpr int kTrialsOfOneSearch = 32;
// How many nodes are tried as the one to empty, and how many are examined for these. The nodes with
// the most free resources come first: the limit matters only where more than a thousand lack about
// the same.
constexpr size_t kMostNodesTried = 32;
constexpr int kMostNodesExamined = 1024;
// How many chains of two moves are tried, how many nodes their first unit may leave, and how many
// nodes are looked at for the second, beyond a first look at all.
constexpr int kMostChainsTried = 64;
constexpr size_t kMostNodesOfChains = 8;
constexpr size_t kMostNodesLookedAtAgain = 4096;

/// A node, the resources that it lacks for one more task, and its movable units in the order in
/// which they move.
struct ClearableNode {
  int64_t lacks_gpu = 0;
  int64_t lacks_cpu = 0;
  int64_t lacks_memory = 0;
  std::vector<size_t> rank_of_movers;
  NodeIndex node = -1;

  auto operator<=>(const ClearableNode&) const = default;
  bool lacks_less_than(const ClearableNode& other) const {
    return std::tie(lacks_gpu, lacks_cpu, lacks_memory) <
           std::tie(other.lacks_gpu, other.lacks_cpu, other.lacks_memory);
  }
};

/// The claim that is hardest to place, of tasks of the gang by group.
Claim hardest_claim(const Gang& gang, const std::vector<int>& counts) {
  Claim hardest;
  for (size_t group = 0; group < counts.size(); ++group) {
    if (counts[group] == 0) continue;
    const Claim& claim = gang.groups[group].claim;
    if (size_of(hardest) < size_of(claim)) hardest = claim;
  }
  return hardest;
}

Claim hardest_claim(const EvictionUnit& unit) {
  const std::vector<int> groups = groups_of_tasks(unit.gang->gang);
  std::vector<int> counts(unit.gang->gang.groups.size());
  for (const int task : unit.tasks) {
    ++counts[static_cast<size_t>(groups[static_cast<size_t>(task)])];
  }
  return hardest_claim(unit.gang->gang, counts);
}

class Consolidation {
 public:
  Consolidation(const Cycle& cycle, Pool& pool, Trial& trial, const PlacementRequest& request)
      : cycle_(cycle), pool_(pool), trial_(trial), asking_(request) {}

  std::optional<Decision> find() {
    VictimSelection without_moves(trial_, cycle_.options, pool_, asking_, false);
    if (!without_moves.has_free_in_all() || without_moves.fits_already()) return std::nullopt;
    trials_ = kTrialsOfOneSearch;
    const std::vector<ClearableNode> candidates =
        find_candidates(hardest_claim(asking_.gang.gang, asking_.counts));
    const size_t most = std::min(candidates.size(), kMostNodesTried);
    for (size_t first = 0; first < most; ++first) {
      trial_.rollback(0);
      if (std::optional<Decision> decision = find_from(candidates, first)) return decision;
    }
    for (size_t first = 0; first < std::min(most, kMostNodesOfChains); ++first) {
      if (std::optional<Decision> decision = find_chains(candidates[first].node)) return decision;
    }
    trial_.rollback(0);
    return std::nullopt;
  }

  /// For how many trials find() counts.
  int trials() const { return trials_; }

 private:
  bool may_move(const GangState& gang) const {
    return gang.core && gang.home == &pool_ && &gang != &asking_.gang &&
           !is_protected(cycle_, pool_, gang, &Project::reclaim_min_runtime);
  }

  /// Nodes on which a task of `claim` may fit after moves; nodes that lack the least come first.
  /// The result has as many nodes as can matter: each tried node may need some of the nodes after
  /// it, but never more than may move. A heap with the worst of the best nodes at its front limits
  /// the memory, because most nodes are no candidates. Nodes with the most free GPUs are examined
  /// first, so the search ends when the heap is full and the others lack more, or when enough nodes
  /// have been examined.
  std::vector<ClearableNode> find_candidates(const Claim& claim) {
    const size_t most =
        kMostNodesTried + static_cast<size_t>(cycle_.options.most_consolidation_victims);
    const int64_t gpu_milli = claim.gpus * int64_t{kWholeGpu} + claim.gpu_share_milli;
    std::vector<ClearableNode> best;
    ClearableNode one;
    int left = kMostNodesExamined;
    pool_.nodes.each_set(FreeWhen::kLater, [&](const NodeSet& same) {
      const Amounts lacks{gpu_milli - same.free.gpu_milli, claim.cpu_milli - same.free.cpu_milli,
                          claim.memory_bytes - same.free.memory_bytes};
      one.lacks_gpu = std::max<int64_t>(lacks.gpu_milli, 0);
      one.lacks_cpu = std::max<int64_t>(lacks.cpu_milli, 0);
      one.lacks_memory = std::max<int64_t>(lacks.memory_bytes, 0);
      const bool is_full = best.size() == most;
      if (is_full && best.front().lacks_less_than(one)) {
        return gpu_milli - same.usable_gpu_milli <= best.front().lacks_gpu;
      }
      for (const NodeIndex node : same.nodes) {
        if (left-- == 0) return false;
        if (!is_clearable(lacks, node, one)) continue;
        if (best.size() < most) {
          best.push_back(one);
        } else if (one < best.front()) {
          std::pop_heap(best.begin(), best.end());
          best.back() = one;
        } else {
          continue;
        }
        std::push_heap(best.begin(), best.end());
      }
      return true;
    });
    std::sort_heap(best.begin(), best.end());
    return best;
  }

  /// Whether the resources that `node` lacks become free when its movable units leave; fills in
  /// their ranks and the node.
  bool is_clearable(const Amounts& lacks, NodeIndex node, ClearableNode& one) const {
    one.rank_of_movers.clear();
    Amounts movable;
    for (const Tenant& tenant : pool_.tenants_of(node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      if (task.phase != TaskPhase::kRunning || !may_move(*tenant.gang)) continue;
      movable += amounts_of(task.held);
      one.rank_of_movers.push_back(rank_of(*tenant.gang));
    }
    // Without a movable unit the node cannot gain anything.
    if (one.rank_of_movers.empty() || !lacks.within(movable)) return false;
    one.node = node;
    std::sort(one.rank_of_movers.begin(), one.rank_of_movers.end());
    return true;
  }

  /// The rank is smaller for gangs that move earlier: the least important, of equal ones the
  /// youngest.
  size_t rank_of(const GangState& gang) const {
    constexpr uint64_t kMostGangs = uint64_t{1} << 40;
    const auto priority = static_cast<uint64_t>(std::clamp(gang.gang.priority, 0, 1 << 20));
    return priority * kMostGangs + (kMostGangs - std::min(gang.number, kMostGangs));
  }

  std::optional<Decision> find_from(const std::vector<ClearableNode>& candidates, size_t first) {
    VictimSelection room(trial_, cycle_.options, pool_, asking_, false);
    const auto most = static_cast<size_t>(cycle_.options.most_consolidation_victims);
    moved_.clear();
    for (size_t i = first; i < candidates.size(); ++i) {
      for (EvictionUnit& unit : movers_on(candidates[i].node)) {
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

  /// Whether the resources of this unit alone suffice for the lack of the node.
  bool clears(const EvictionUnit& unit, const ClearableNode& node) const {
    Amounts held;
    for (const int task : unit.tasks) {
      const Booking booking = booking_in(unit.gang->tasks[static_cast<size_t>(task)], pool_);
      if (booking.node == node.node) held += amounts_of(booking);
    }
    return Amounts{node.lacks_gpu, node.lacks_cpu, node.lacks_memory}.within(held);
  }

  /// Chains whose first unit leaves `node`, and with it alone enough room.
  std::optional<Decision> find_chains(NodeIndex node) {
    if (cycle_.options.most_consolidation_victims < 2) return std::nullopt;
    trial_.rollback(0);
    moved_.clear();
    for (const EvictionUnit& first : single_movers_on(node)) {
      if (chains_left_ <= 0) return std::nullopt;
      if (const auto* const seconds = seconds_for(first); seconds != nullptr) {
        for (const ClearableNode& second : *seconds) {
          if (second.node == node) continue;
          if (std::optional<Decision> decision = find_chain(first, second)) return decision;
        }
      }
    }
    return std::nullopt;
  }

  /// Nodes that `first` might move to if another moved off them; nullptr where it cannot make room,
  /// or too many claims have been looked at.
  const std::vector<ClearableNode>* seconds_for(const EvictionUnit& first) {
    const size_t mark = trial_.mark();
    bool makes_room = false;
    {
      VictimSelection room(trial_, cycle_.options, pool_, asking_, false);
      room.evict(first, false);
      makes_room = room.is_worth_a_try() && room.fits_already();
    }
    trial_.rollback(mark);
    if (!makes_room) return nullptr;
    const Claim claim = hardest_claim(first);
    const auto known = seconds_.find(size_of(claim));
    if (known != seconds_.end()) return &known->second;
    if (seconds_.size() * static_cast<size_t>(pool_.nodes.count()) > kMostNodesLookedAtAgain) {
      return nullptr;
    }
    return &seconds_.emplace(size_of(claim), find_candidates(claim)).first->second;
  }

  std::optional<Decision> find_chain(const EvictionUnit& first, const ClearableNode& node) {
    for (const EvictionUnit& second : single_movers_on(node.node)) {
      if (second.gang == first.gang || !clears(second, node)) continue;
      if (chains_left_-- <= 0) return std::nullopt;
      VictimSelection room(trial_, cycle_.options, pool_, asking_, false);
      room.evict(first, false);
      room.evict(second, false);
      if (std::optional<Decision> decision = room.conclude_chain()) return decision;
      trial_.rollback(0);
    }
    return std::nullopt;
  }

  /// The movable units on the node in the order in which they move. A task beyond its gang's
  /// minimum moves alone; any other task moves with all of its gang.
  std::vector<EvictionUnit> movers_on(NodeIndex node) const {
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
    std::vector<EvictionUnit> units;
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

  /// As movers_on(), but no unit relies on the units before it: a core has all tasks of its gang.
  std::vector<EvictionUnit> single_movers_on(NodeIndex node) const {
    std::vector<EvictionUnit> units = movers_on(node);
    for (EvictionUnit& unit : units) {
      if (!unit.core) continue;
      std::vector<int> tasks;
      for (size_t task = 0; task < unit.gang->tasks.size(); ++task) {
        const bool runs = unit.gang->tasks[task].phase == TaskPhase::kRunning;
        if (runs) tasks.push_back(static_cast<int>(task));
      }
      unit = unit_of(*unit.gang, pool_, std::move(tasks), true);
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
  const PlacementRequest& asking_;
  std::set<std::pair<uint64_t, int>> moved_;  ///< gang and task, on the nodes before
  int trials_ = 1;
  int chains_left_ = kMostChainsTried;
  /// By the size of a claim: the nodes on which a task of it fits after a move.
  std::map<ClaimSize, std::vector<ClearableNode>> seconds_;
};

bool may_consolidate(const Pool& pool, const WaitClass& waiting) {
  return !waiting.waiters.empty() && waiting.key.preemptible && !waiting.only_grows() &&
         waiting.ask->consolidation_failed != pool.epoch && has_room_in_all(pool, waiting.charge) &&
         !pool.ledger.refuses(waiting.leaf, waiting.charge, waiting.key.preemptible);
}

bool try_consolidate(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  const PlacementRequest request = request_of(cycle.options, gang, pool, waiting.key.ask.counts);
  Trial trial(pool);
  Consolidation search(cycle, pool, trial, request);
  const std::optional<Decision> decision = search.find();
  cycle.trials_left -= search.trials();
  if (!decision) return false;
  carry_out(cycle, pool, trial, request, *decision, EvictionCause::kMoved);
  return true;
}

}  // namespace

std::optional<Decision> find_to_move(const Cycle& cycle, Pool& pool, Trial& trial,
                                     const PlacementRequest& request) {
  const Gang& gang = request.gang.gang;
  if (!gang.preemptible || !has_room_in_all(pool, request.charge) ||
      pool.ledger.refuses(request.entry.leaf, request.charge, true)) {
    return std::nullopt;
  }
  return Consolidation(cycle, pool, trial, request).find();
}

void consolidate(Cycle& cycle, Pool& pool) {
  ServeOrder order(pool, cycle.options.policy);
  for (const auto& [key, ask] : pool.asks) {
    if (ask.consolidation_failed == pool.epoch || !has_room_in_all(pool, ask.least_charge))
      continue;
    for (WaitClass* const waiting : ask.classes) {
      if (may_consolidate(pool, *waiting)) order.add(*waiting);
    }
  }
  while (WaitClass* const waiting = order.top()) {
    GangState* const gang =
        may_consolidate(pool, *waiting) ? first_that_may_evict(cycle, pool, *waiting) : nullptr;
    if (gang != nullptr && cycle.trials_left <= 0) {
      pool.unfinished = true;
      return;
    }
    if (gang != nullptr && try_consolidate(cycle, pool, *gang, *waiting)) {
      order.add(*waiting);
      continue;
    }
    if (gang != nullptr) waiting->ask->consolidation_failed = pool.epoch;
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
