// The questions that the scheduler answers. Each one leaves the scheduler's state unchanged.

#include <algorithm>

#include "schedule/cluster.h"
#include "schedule/eviction.h"
#include "schedule/explain.h"
#include "schedule/gang_books.h"
#include "schedule/reserved_limits.h"

namespace muster::schedule {

namespace {

/// More than a limit above it lets it have, though nothing else ran.
std::optional<WaitVerdict> above_a_limit(const Gang& gang, const Pool& pool) {
  Amounts request;
  for (const TaskGroup& group : gang.groups) {
    request += pool.nodes.charge(group.claim) * group.minimum;
  }
  const ProjectIndex leaf = pool.ledger.find(gang.project);
  for (ProjectIndex level = leaf; level != kNoProject; level = pool.ledger.parent(level)) {
    const Standing standing = pool.ledger.standing(level);
    for (const Resource resource : kResources) {
      if (request[resource] <= standing.limit[resource]) continue;
      return capacity_verdict(gang,
                              {.what = CapacityRefusal::What::kLimit,
                               .project = level,
                               .resource = resource,
                               .bound = standing.limit[resource],
                               .allocated = standing.allocated[resource],
                               .requested = request[resource]},
                              pool.ledger);
    }
  }
  return std::nullopt;
}

std::vector<std::string> pools_of(const Gang& gang) {
  return gang.pools.empty() ? std::vector<std::string>{kDefaultPool} : gang.pools;
}

}  // namespace

std::optional<WaitVerdict> Scheduler::refuses(const Gang& gang) const {
  const Pool none;
  std::optional<WaitVerdict> first;
  for (const std::string& name : pools_of(gang)) {
    const auto known = state_->pools.find(name);
    const Pool& pool = known == state_->pools.end() ? none : *known->second;
    std::optional<WaitVerdict> refusal = above_a_limit(gang, pool);
    if (!refusal) {
      const std::optional<Shortage> shortage = pool.nodes.could_never_hold(gang);
      if (!shortage) return std::nullopt;
      refusal = shortage_verdict(gang, name, *shortage, false);
    }
    const bool is_better = !first || (has_no_open_node(*first) && !has_no_open_node(*refusal));
    if (is_better) first = std::move(refusal);
  }
  if (has_no_open_node(*first)) std::get<job::NoRoom>(first->reason.what).pools = pools_of(gang);
  return first;
}

WaitVerdict Scheduler::explain(const std::string& id, Time now) const {
  GangState* const gang = state_->find(id);
  if (gang == nullptr) return {};
  const Cycle cycle = state_->cycle(now, state_->plans + 1);
  return explain_gang(cycle, *gang);
}

void Scheduler::each_waiting(const std::function<bool(const std::string& id)>& visit) const {
  std::set<const GangState*> visited;  // of the gangs that wait in several pools
  bool more = true;
  const auto pass = [&](const GangState& gang) {
    if (!more || (gang.entries.size() > 1 && !visited.insert(&gang).second)) return;
    more = visit(gang.gang.id);
  };
  for (const auto& [name, pool] : state_->pools) {
    settle_books(*pool);
    for (const GangState* const gang : pool->promised) {
      if (running_tasks(*gang) == 0) pass(*gang);
    }
    ServeOrder order(*pool, state_->options.policy);
    order.add_all();
    for (WaitClass* waiting = more ? order.top() : nullptr; waiting != nullptr;
         waiting = more ? order.top() : nullptr) {
      const GangState& gang = *order.head(*waiting);
      if (running_tasks(gang) == 0) pass(gang);
      order.skip_head(*waiting);
    }
    for (const GangState* const gang : pool->homeless) pass(*gang);
  }
  for (const auto& [time, number, gang] : state_->delayed) pass(*gang);
}

std::vector<std::string> Scheduler::queue(size_t most) const {
  std::vector<std::string> ids;
  if (most == 0) return ids;
  each_waiting([&](const std::string& id) {
    ids.push_back(id);
    return ids.size() < most;
  });
  return ids;
}

std::optional<size_t> Scheduler::place_in_queue(const std::string& id) const {
  size_t before = 0;
  bool found = false;
  each_waiting([&](const std::string& other) {
    found = other == id;
    before += found ? 0 : 1;
    return !found;
  });
  return found ? std::optional(before) : std::nullopt;
}

namespace {

/// What gangs of the project request in this pool that is already counted in another one.
Amounts repeated_requests_of(const Pool& pool, ProjectIndex project) {
  WideAmounts sum;
  for (const auto& [leaf, repeated] : pool.repeated_requests) {
    ProjectIndex level = leaf;
    while (level != kNoProject && level != project) level = pool.ledger.parent(level);
    if (level == project) sum += repeated;
  }
  return sum.clamped();
}

}  // namespace

Standing Scheduler::standing(const std::string& project, const std::string& pool) const {
  Standing sum;
  const bool any_has_nodes =
      std::any_of(state_->pools.begin(), state_->pools.end(),
                  [](const auto& named) { return named.second->nodes.count() > 0; });
  for (const auto& [name, one] : state_->pools) {
    if (!pool.empty() && name != pool) continue;
    settle_books(*one);
    const ProjectIndex index = one->ledger.find(project);
    if (index == kNoProject) continue;
    const Standing part = one->ledger.standing(index);
    const auto add = [](Amounts& to, const Amounts& more) {
      for (const Resource resource : kResources) {
        to[resource] = std::min(to[resource] + more[resource], kUnlimited);
      }
    };
    // A pool without nodes, which gangs may name, has nothing to give.
    const bool counts = !pool.empty() || !any_has_nodes || one->nodes.count() > 0;
    if (counts) add(sum.deserved, part.deserved);
    if (counts) add(sum.limit, part.limit);
    add(sum.fair_share, part.fair_share);
    add(sum.allocated, part.allocated);
    add(sum.allocated_non_preemptible, part.allocated_non_preemptible);
    const Amounts repeated = pool.empty() ? repeated_requests_of(*one, index) : Amounts{};
    add(sum.requested, part.requested - repeated);
  }
  return sum;
}

std::vector<int> Scheduler::free_devices(const std::string& node) const {
  const auto pool = state_->pool_of_node.find(node);
  if (pool == state_->pool_of_node.end()) return {};
  const Nodes& nodes = pool->second->nodes;
  return nodes.free_devices(*nodes.find(node), FreeWhen::kNow);
}

Amounts Scheduler::free(const std::string& node) const {
  const auto pool = state_->pool_of_node.find(node);
  if (pool == state_->pool_of_node.end()) return {};
  const Nodes& nodes = pool->second->nodes;
  return nodes.free(*nodes.find(node), FreeWhen::kNow);
}

bool Scheduler::lacks_gpus(const std::string& node) const {
  const auto pool = state_->pool_of_node.find(node);
  if (pool == state_->pool_of_node.end()) return false;
  const Nodes& nodes = pool->second->nodes;
  return nodes.holds_missing_gpus(*nodes.find(node));
}

bool Scheduler::is_stale() const {
  return std::any_of(state_->pools.begin(), state_->pools.end(), [](const auto& named) {
    settle_books(*named.second);
    return muster::schedule::is_stale(*named.second);
  });
}

bool Scheduler::has_wrong_node_books() const {
  return std::any_of(state_->pools.begin(), state_->pools.end(), [](const auto& named) {
    return muster::schedule::has_wrong_node_books(*named.second);
  });
}

// The forecast for a gang that would be submitted now. The gang is entered, tried by the rules of
// the cycle, and removed again.

namespace {

/// As the pool was before the question, once everything is taken out again.
class PoolGuard {
 public:
  explicit PoolGuard(Pool& pool)
      : pool_(pool), dirty_(pool.dirty), epoch_(pool.epoch), again_at_(pool.again_at) {}
  ~PoolGuard() {
    drop_empty_classes(pool_);
    pool_.dirty = dirty_;
    pool_.epoch = epoch_;
    pool_.again_at = again_at_;
  }
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;

 private:
  Pool& pool_;
  bool dirty_;
  uint64_t epoch_;
  std::optional<Time> again_at_;
};

/// Blocked gangs that are served before it get their reservations first.
void keep_room_for_those_before(const Cycle& cycle, Pool& pool, const WaitClass& own,
                                Reservations& reservations) {
  if (!reservations.takes_more()) return;
  ServeOrder order(pool, cycle.options.policy);
  order.add_all();
  for (WaitClass* waiting = order.top(); waiting != nullptr && waiting != &own;
       waiting = order.top()) {
    if (waiting->ask->shortage) {
      reservations.blocked(
          request_of(cycle.options, waiting->head(), pool, waiting->key.ask.counts));
    }
    order.drop(*waiting);
  }
}

class Outlook {
 public:
  Outlook(const Cycle& cycle, GangState& gang) : cycle_(cycle), gang_(gang) {}

  /// As in a plan: whether it starts in one of its pools now, or else in one of them after evictions.
  bool starts(Forecast& forecast) {
    const auto in_any_pool = [&](auto&& starts_in) {
      return std::any_of(gang_.entries.begin(), gang_.entries.end(), [&](const PoolEntry& entry) {
        if (entry.waits_in == nullptr) return false;
        settle_books(*entry.pool);
        return starts_in(*entry.pool, request_of(cycle_.options, gang_, *entry.pool,
                                                 entry.waits_in->key.ask.counts));
      });
    };
    return in_any_pool([&](Pool& pool, const PlacementRequest& request) {
             return starts_now(pool, request, forecast);
           }) ||
           in_any_pool([&](Pool& pool, const PlacementRequest& request) {
             return starts_by_eviction(pool, request, forecast);
           });
  }

 private:
  bool starts_now(Pool& pool, const PlacementRequest& request, Forecast& forecast) {
    if (pool.ledger.refuses(request.entry.leaf, request.charge, gang_.gang.preemptible))
      return false;
    if (held_at_limit(pool, request) != nullptr) return false;
    Reservations reservations(cycle_, pool);
    keep_room_for_those_before(cycle_, pool, *request.entry.waits_in, reservations);
    if (held_at_later_limit(pool, request, cycle_.now) != nullptr) return false;
    const Reservations::Placed placed = reservations.place(request);
    if (!placed.bookings) return false;
    PlannedStart start{.id = gang_.gang.id, .tasks = open_tasks(gang_, request.counts)};
    for (const Booking& booking : *placed.bookings) {
      start.places.push_back(pool.nodes.place_of(booking));
      pool.nodes.unbook(booking);
    }
    forecast.start.push_back(std::move(start));
    forecast.project_then.allocated += request.charge;
    if (!gang_.gang.preemptible) {
      forecast.project_then.allocated_non_preemptible += request.charge;
    }
    return true;
  }

  bool starts_by_eviction(Pool& pool, const PlacementRequest& request, Forecast& forecast) {
    if (cycle_.options.policy != Policy::kFair) return false;
    using Find = std::optional<Decision> (*)(const Cycle&, Pool&, Trial&, const PlacementRequest&);
    for (const auto& [find, cause] :
         {std::pair<Find, EvictionCause>{find_to_move, EvictionCause::kMoved},
          {find_to_reclaim, EvictionCause::kReclaimed},
          {find_to_preempt, EvictionCause::kPreempted}}) {
      Trial trial(pool);
      const std::optional<Decision> decision = find(cycle_, pool, trial, request);
      if (!decision) continue;
      forecast.evictions = evictions_of(pool, trial, request, *decision, cause, Tense::kForecast);
      forecast.verdict = after_evictions_verdict(forecast.evictions);
      const Standing then = pool.ledger.standing(request.entry.leaf);
      trial.rollback(0);
      const Standing now = pool.ledger.standing(request.entry.leaf);
      forecast.project_then.allocated += then.allocated - now.allocated;
      forecast.project_then.allocated_non_preemptible +=
          then.allocated_non_preemptible - now.allocated_non_preemptible;
      return true;
    }
    return false;
  }

  const Cycle& cycle_;
  GangState& gang_;
};

}  // namespace

Forecast Scheduler::forecast(const Gang& gang, Time now) const {
  Forecast forecast;
  forecast.project_now = standing(gang.project);
  const Cycle cycle = state_->cycle(now, state_->plans + 1);
  std::unique_ptr<GangState> guest = state_->make_guest(gang);
  std::vector<std::unique_ptr<PoolGuard>> guards;
  for (const PoolEntry& entry : guest->entries) {
    guards.push_back(std::make_unique<PoolGuard>(*entry.pool));
  }
  refresh(*guest);
  for (const PoolEntry& entry : guest->entries) settle_books(*entry.pool);
  forecast.project_then = standing(gang.project);
  Outlook outlook(cycle, *guest);
  if (!outlook.starts(forecast)) forecast.verdict = explain_gang(cycle, *guest);
  state_->leave_pools(*guest);
  for (const PoolEntry& entry : guest->entries) settle_books(*entry.pool);
  guards.clear();
  state_->shapes.drop(guest->shape);
  state_->drop_unused_pools();
  return forecast;
}

}  // namespace muster::schedule
