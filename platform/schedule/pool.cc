#include "schedule/pool.h"

#include <algorithm>

#include "schedule/node_room.h"

namespace muster::schedule {

std::vector<int> groups_of_tasks(const Gang& gang) {
  std::vector<int> groups;
  for (size_t group = 0; group < gang.groups.size(); ++group) {
    groups.insert(groups.end(), static_cast<size_t>(std::max(gang.groups[group].count, 0)),
                  static_cast<int>(group));
  }
  return groups;
}

namespace {

/// Calls with each task and the index of its group.
template <class Visit>
void for_each_task(const GangState& gang, const Visit& visit) {
  size_t task = 0;
  for (size_t group = 0; group < gang.gang.groups.size(); ++group) {
    const size_t end = task + static_cast<size_t>(std::max(gang.gang.groups[group].count, 0));
    for (; task < end && task < gang.tasks.size(); ++task) visit(task, group);
  }
}

}  // namespace

std::vector<int> running_by_group(const GangState& gang) {
  std::vector<int> running(gang.gang.groups.size());
  for_each_task(gang, [&](size_t task, size_t group) {
    running[group] += gang.tasks[task].phase == TaskPhase::kRunning;
  });
  return running;
}

int running_tasks(const GangState& gang) {
  return static_cast<int>(
      std::count_if(gang.tasks.begin(), gang.tasks.end(),
                    [](const TaskState& task) { return task.phase == TaskPhase::kRunning; }));
}

bool holds_anything(const GangState& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(), [](const TaskState& task) {
    return task.phase != TaskPhase::kOpen || task.promised.has_value();
  });
}

bool has_promise(const GangState& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(),
                     [](const TaskState& task) { return task.promised.has_value(); });
}

bool is_leaving(const GangState& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(),
                     [](const TaskState& task) { return task.phase == TaskPhase::kLeaving; });
}

bool is_below_minimum(const GangState& gang) {
  if (running_tasks(gang) == 0) return false;
  const std::vector<int> running = running_by_group(gang);
  for (size_t group = 0; group < running.size(); ++group) {
    if (running[group] < gang.gang.groups[group].minimum) return true;
  }
  return false;
}

std::optional<NextRequest> next_request_of(const GangState& gang) {
  if (has_promise(gang) || is_leaving(gang)) return std::nullopt;
  const std::vector<int> running = running_by_group(gang);
  NextRequest next{.counts = std::vector<int>(running.size())};
  bool lacks = false;
  bool above = false;
  for (size_t group = 0; group < running.size(); ++group) {
    const TaskGroup& spec = gang.gang.groups[group];
    next.counts[group] = std::max(spec.minimum - running[group], 0);
    lacks = lacks || next.counts[group] > 0;
    above = above || running[group] > spec.minimum;
  }
  if (lacks) return next;
  next.state = above ? ElasticState::kAboveMinimum : ElasticState::kAtMinimum;
  for (size_t group = 0; group < running.size(); ++group) {
    if (running[group] >= gang.gang.groups[group].count) continue;
    next.counts[group] = 1;
    return next;
  }
  return std::nullopt;
}

std::vector<int> open_tasks(const GangState& gang, const std::vector<int>& counts) {
  std::vector<int> left = counts;
  std::vector<int> tasks;
  for_each_task(gang, [&](size_t task, size_t group) {
    if (gang.tasks[task].phase != TaskPhase::kOpen || left[group] <= 0) return;
    --left[group];
    tasks.push_back(static_cast<int>(task));
  });
  return tasks;
}

std::vector<int> extra_tasks(const GangState& gang) {
  std::vector<int> left = running_by_group(gang);
  for (size_t group = 0; group < left.size(); ++group)
    left[group] -= gang.gang.groups[group].minimum;
  if (std::any_of(left.begin(), left.end(), [](int extra) { return extra < 0; })) return {};
  std::vector<int> of_workers;
  std::vector<int> of_launchers;
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  for (size_t task = groups.size(); task-- > 0;) {
    const auto group = static_cast<size_t>(groups[task]);
    if (gang.tasks[task].phase != TaskPhase::kRunning || left[group] <= 0) continue;
    --left[group];
    (gang.gang.groups[group].launcher ? of_launchers : of_workers)
        .push_back(static_cast<int>(task));
  }
  of_workers.insert(of_workers.end(), of_launchers.begin(), of_launchers.end());
  return of_workers;
}

Booking booking_in(const TaskState& task, const Pool& pool) {
  return task.held_in == &pool ? task.held : Booking{};
}

std::vector<Booking> held_bookings(const GangState& gang) {
  std::vector<Booking> held;
  for (const TaskState& task : gang.tasks) {
    const bool is_there = task.held.node >= 0 && task.held_in == gang.home;
    if (task.phase == TaskPhase::kRunning && is_there) held.push_back(task.held);
  }
  return held;
}

bool is_on_silent_node(const GangState& gang) {
  return std::any_of(gang.tasks.begin(), gang.tasks.end(), [](const TaskState& task) {
    return task.phase != TaskPhase::kOpen && task.held.node >= 0 &&
           task.held_in->nodes.node(task.held.node).silent;
  });
}

PoolEntry& entry_in(GangState& gang, const Pool& pool) {
  return *std::find_if(gang.entries.begin(), gang.entries.end(),
                       [&](const PoolEntry& entry) { return entry.pool == &pool; });
}

const PoolEntry& entry_in(const GangState& gang, const Pool& pool) {
  return *std::find_if(gang.entries.begin(), gang.entries.end(),
                       [&](const PoolEntry& entry) { return entry.pool == &pool; });
}

Amounts charge_of(const PoolEntry& entry, const std::vector<int>& counts) {
  Amounts sum;
  for (size_t group = 0; group < counts.size() && group < entry.charge.size(); ++group) {
    sum += entry.charge[group] * counts[group];
  }
  return sum;
}

const std::vector<QueuedClass>& classes_in_order(ProjectQueue& queue) {
  if (queue.is_in_order) return queue.in_order;
  queue.is_in_order = true;
  queue.in_order.clear();
  for (const auto& [key, waiting] : queue.classes) {
    if (waiting->waiters.empty()) continue;
    const GangState& head = waiting->head();
    queue.in_order.push_back({.negative_priority = -key.priority,
                              .state = key.state,
                              .sequence = head.gang.sequence,
                              .number = head.number,
                              .waiting = waiting.get(),
                              .ask = waiting->ask});
  }
  std::sort(queue.in_order.begin(), queue.in_order.end());
  return queue.in_order;
}

bool is_contested(const ProjectQueue& queue) {
  return !queue.cores.empty() && !queue.classes.empty() &&
         queue.classes.rbegin()->first.priority > queue.cores.begin()->priority;
}

void index_contested(Pool& pool, ProjectIndex leaf) {
  is_contested(pool.queue_of(leaf)) ? static_cast<void>(pool.contested.insert(leaf))
                                    : static_cast<void>(pool.contested.erase(leaf));
}

Amounts least_of(const Amounts& one, const Amounts& other) {
  Amounts least;
  for (const Resource resource : kResources) {
    least[resource] = std::min(one[resource], other[resource]);
  }
  return least;
}

bool is_leaf(const Pool& pool, ProjectIndex project) {
  return project != kNoProject && pool.ledger.find(pool.ledger.name(project)) == project &&
         pool.ledger.children(project).empty();
}

void set_projects(Pool& pool, const std::vector<Project>& projects) {
  pool.ledger.set_projects(projects, pool.name);
  for (const Project& project : projects) pool.queue_of(pool.ledger.find(project.name));
  pool.dirty = true;
  ++pool.epoch;
}

bool is_stale(Pool& pool) {
  if (pool.ledger.has_stale_shares() || pool.rankings.is_stale(pool)) return true;
  for (size_t index = 0; index < pool.queues.size(); ++index) {
    ProjectQueue& queue = pool.queues[index];
    const std::vector<QueuedClass> kept = classes_in_order(queue);
    queue.is_in_order = false;
    if (kept != classes_in_order(queue)) return true;
    const Amounts first = queue.cores.empty() ? Amounts{} : queue.cores.begin()->gang->counted;
    if (!(queue.first_lost == first)) return true;
    const bool is_listed = pool.contested.contains(static_cast<ProjectIndex>(index));
    if (is_listed != is_contested(queue)) return true;
  }
  return false;
}

void settle_books(Pool& pool) {
  if (pool.all_grew) pool.ledger.set_total(pool.nodes.total());
  pool.ledger.settle_fair_shares();
}

namespace {

bool might_hold(const Amounts& free, const std::vector<int>& devices, const Claim& claim) {
  if (claim.cpu_milli > free.cpu_milli || claim.memory_bytes > free.memory_bytes) return false;
  if (claim.gpus > 0) return std::count(devices.begin(), devices.end(), kWholeGpu) >= claim.gpus;
  if (claim.gpu_share_milli == 0 && claim.gpu_memory_bytes == 0) return true;
  const int share = std::max(claim.gpu_share_milli, 1);
  return std::any_of(devices.begin(), devices.end(), [&](int device) { return device >= share; });
}

}  // namespace

bool might_hold_one(const Nodes& nodes, NodeIndex node, const std::vector<Claim>& claims,
                    FreeWhen room) {
  const Amounts free = nodes.free(node, room);
  const std::vector<int> devices = nodes.free_devices(node, room);
  return std::any_of(claims.begin(), claims.end(),
                     [&](const Claim& claim) { return might_hold(free, devices, claim); });
}

bool might_hold_one_unreserved(const Nodes& nodes, NodeIndex node,
                               const std::vector<Claim>& claims) {
  NodeRoom room;
  nodes.unused(node, room);
  const Amounts free{room.gpu_milli, room.cpu_milli, room.memory_bytes};
  return std::any_of(claims.begin(), claims.end(),
                     [&](const Claim& claim) { return might_hold(free, room.devices, claim); });
}

bool has_room_in_all(const Pool& pool, const Amounts& charge) {
  return pool.cordoned > 0 || pool.elsewhere > 0 ||
         (pool.counted + charge).within(pool.nodes.total());
}

void forget_shortages(Pool& pool) {
  std::sort(pool.grown.begin(), pool.grown.end());
  pool.grown.erase(std::unique(pool.grown.begin(), pool.grown.end()), pool.grown.end());
  for (auto& [key, ask] : pool.asks) {
    if (!ask.shortage) continue;
    // Resources that are reserved for others look taken, but some classes need not respect each
    // reservation. A request that fits on reserved resources may be granted without growth: by a
    // change of quotas.
    const bool grew = pool.all_grew || ask.only_reserved ||
                      std::any_of(pool.grown.begin(), pool.grown.end(), [&](NodeIndex node) {
                        return pool.kept.empty()
                                   ? might_hold_one(pool.nodes, node, ask.claims, FreeWhen::kNow)
                                   : might_hold_one_unreserved(pool.nodes, node, ask.claims);
                      });
    if (grew) ask.shortage.reset();
  }
  for (const Reservation& kept : pool.kept) {
    const WaitClass* const waiting = entry_in(*kept.gang, pool).waits_in;
    const bool grew =
        std::any_of(kept.bookings.begin(), kept.bookings.end(), [&](const Booking& booking) {
          return std::binary_search(pool.grown.begin(), pool.grown.end(), booking.node);
        });
    if (grew && waiting != nullptr) waiting->ask->shortage.reset();
  }
  pool.grown.clear();
  pool.all_grew = false;
}

}  // namespace muster::schedule
