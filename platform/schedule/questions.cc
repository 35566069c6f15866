// What can be asked of the scheduler. Nothing of it changes anything in the end.
#include <algorithm>

#include "schedule/cluster.h"
#include "schedule/explain.h"
#include "schedule/reason.h"
#include "schedule/scheduler_state.h"

namespace muster::schedule {

namespace {

/// More than a limit above it lets it have, though nothing else ran.
std::optional<Verdict> above_a_limit(const Gang& gang, const Pool& pool) {
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

std::optional<Verdict> Scheduler::refuses(const Gang& gang) const {
  const Pool none;
  std::optional<Verdict> first;
  for (const std::string& name : pools_of(gang)) {
    const auto known = state_->pools.find(name);
    const Pool& pool = known == state_->pools.end() ? none : *known->second;
    std::optional<Verdict> refusal = above_a_limit(gang, pool);
    if (!refusal) {
      const std::optional<Shortage> shortage = pool.nodes.could_never_hold(gang);
      if (!shortage) return std::nullopt;
      refusal = shortage_verdict(gang, *shortage, false);
    }
    if (!first) first = std::move(refusal);
  }
  return first;
}

Verdict Scheduler::explain(const std::string& id, Time now) const {
  GangState* const gang = state_->find(id);
  if (gang == nullptr) return {};
  const Cycle cycle = state_->cycle(now, state_->plans + 1);
  return explain_gang(cycle, *gang);
}

std::vector<std::string> Scheduler::queue() const {
  std::vector<std::string> ids;
  std::set<std::string> listed;
  const auto list = [&](const GangState& gang) {
    if (listed.insert(gang.gang.id).second) ids.push_back(gang.gang.id);
  };
  for (const auto& [name, pool] : state_->pools) {
    settle_books(*pool);
    for (const GangState* const gang : pool->promised) {
      if (running_tasks(*gang) == 0) list(*gang);
    }
    ServeOrder order(*pool, state_->options.policy);
    for (ProjectQueue& queue : pool->queues) {
      for (auto& [key, waiting] : queue.classes) order.add(*waiting);
    }
    while (WaitClass* const waiting = order.top()) {
      const GangState& gang = *order.head(*waiting);
      if (running_tasks(gang) == 0) list(gang);
      order.skip_head(*waiting);
    }
    for (const GangState* const gang : pool->homeless) list(*gang);
  }
  for (const auto& [time, number, gang] : state_->delayed) list(*gang);
  return ids;
}

Standing Scheduler::standing(const std::string& project, const std::string& pool) const {
  Standing sum;
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
    add(sum.deserved, part.deserved);
    add(sum.limit, part.limit);
    add(sum.fair_share, part.fair_share);
    add(sum.allocated, part.allocated);
    add(sum.allocated_non_preemptible, part.allocated_non_preemptible);
    add(sum.requested, part.requested);
  }
  return sum;
}

std::vector<int> Scheduler::free_devices(const std::string& node) const {
  const auto pool = state_->pool_of_node.find(node);
  if (pool == state_->pool_of_node.end()) return {};
  const Nodes& nodes = pool->second->nodes;
  return nodes.free_devices(*nodes.find(node), Room::kNow);
}

Amounts Scheduler::free(const std::string& node) const {
  const auto pool = state_->pool_of_node.find(node);
  if (pool == state_->pool_of_node.end()) return {};
  const Nodes& nodes = pool->second->nodes;
  return nodes.free(*nodes.find(node), Room::kNow);
}

}  // namespace muster::schedule
