#include "schedule/cluster.h"

#include <algorithm>

#include "schedule/gang_books.h"
#include "schedule/reservation.h"

namespace muster::schedule {

bool is_listed(const GangState& gang, const Pool& pool) {
  return std::any_of(gang.entries.begin(), gang.entries.end(),
                     [&](const PoolEntry& entry) { return entry.pool == &pool; });
}

Pool& Cluster::pool_of(const std::string& name) {
  std::unique_ptr<Pool>& pool = pools[name];
  if (pool == nullptr) {
    pool = std::make_unique<Pool>();
    pool->name = name;
    pool->ledger.set_decay(options.decay);
    set_projects(*pool, projects);
  }
  return *pool;
}

GangState* Cluster::find(const std::string& id) const {
  const auto entry = gangs.find(id);
  return entry == gangs.end() ? nullptr : entry->second.get();
}

std::unique_ptr<GangState> Cluster::make_guest(Gang gang) {
  auto guest = std::make_unique<GangState>();
  guest->number = next_number;
  guest->shape = shapes.take(gang);
  guest->gang = std::move(gang);
  guest->tasks.resize(static_cast<size_t>(std::max(task_count(guest->gang), 0)));
  std::vector<std::string> names = guest->gang.pools;
  if (names.empty()) names.emplace_back(kDefaultPool);
  for (const std::string& name : names) {
    Pool& pool = pool_of(name);
    if (is_listed(*guest, pool)) continue;
    enter(*guest, pool);
    ++pool.gangs;
  }
  return guest;
}

GangState& Cluster::enter_gang(Gang gang) {
  std::optional<Time> cools_until;
  std::optional<Time> ends_by;
  bool overdue = false;
  if (GangState* const known = find(gang.id); known != nullptr) {
    cools_until = known->cools_until;
    ends_by = known->ends_by;
    overdue = known->overdue;
    forget_gang(*known);
  }
  std::unique_ptr<GangState> guest = make_guest(std::move(gang));
  GangState& entered = *guest;
  entered.cools_until = cools_until;
  entered.ends_by = ends_by;
  entered.overdue = overdue;
  ++next_number;
  if (const auto left = waited.find(entered.gang.id); left != waited.end()) {
    entered.waits_since = left->second;
  }
  for (const PoolEntry& entry : entered.entries) entry.pool->usual.add(entered.gang);
  by_number.emplace(entered.number, &entered);
  gangs.emplace(entered.gang.id, std::move(guest));
  return entered;
}

void Cluster::set_pools(GangState& gang, std::vector<std::string> names) {
  if (names == gang.gang.pools) return;
  gang.reported_reason.reset();
  const uint64_t shape = gang.shape;
  gang.gang.pools = std::move(names);
  gang.shape = shapes.take(gang.gang);
  shapes.drop(shape);
  std::vector<PoolEntry> before = std::exchange(gang.entries, {});
  const auto add = [&](Pool& pool) {
    if (is_listed(gang, pool)) return;
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const PoolEntry& entry) { return entry.pool == &pool; });
    if (known != before.end()) {
      gang.entries.push_back(std::move(*known));
      before.erase(known);
      return;
    }
    enter(gang, pool);
    ++pool.gangs;
    pool.usual.add(gang.gang);
  };
  for (const std::string& name : gang.gang.pools) add(pool_of(name));
  if (gang.home != nullptr) add(*gang.home);
  if (gang.entries.empty()) add(pool_of(kDefaultPool));
  std::swap(gang.entries, before);
  for (const PoolEntry& entry : gang.entries) drop_reservation(*entry.pool, gang);
  leave_pools(gang);
  gang.entries = std::move(before);
  refresh(gang);
}

void Cluster::vacate_all(GangState& gang) {
  if (gang.home != nullptr) {
    for (size_t task = 0; task < gang.tasks.size(); ++task) {
      has_left(vacate(gang, static_cast<int>(task)));
    }
    drop_promise(gang);
  }
  for (const PoolEntry& entry : gang.entries) drop_reservation(*entry.pool, gang);
  if (gang.not_before) delayed.erase({*gang.not_before, gang.number, &gang});
  gang.not_before.reset();
}

void Cluster::forget_gang(GangState& gang) {
  if (gang.waits_since) waited[gang.gang.id] = *gang.waits_since;
  vacate_all(gang);
  refresh(gang);
  leave_pools(gang);
  shapes.drop(gang.shape);
  by_number.erase(gang.number);
  gangs.erase(std::string(gang.gang.id));
}

void Cluster::leave_pools(GangState& gang) {
  withdraw(gang);
  for (const PoolEntry& entry : gang.entries) {
    entry.pool->just_started.erase(&gang);
    --entry.pool->gangs;
  }
}

void Cluster::drop_unused_pools() {
  std::erase_if(pools, [](const auto& named) {
    const Pool& pool = *named.second;
    return pool.gangs == 0 && !pool.had_nodes;
  });
}

void Cluster::has_left(const MakesRoomFor& whom) {
  const auto entry = by_number.find(whom.gang);
  if (entry == by_number.end() || entry->second->promise != whom.promise) return;
  --entry->second->leaving_for_it;
}

// Nodes that are added, changed and removed while gangs run on them.

namespace {

/// Calls with each promise on the node, the oldest first.
template <class Visit>
void for_each_promise_on(const Pool& pool, NodeIndex node, const Visit& visit) {
  for (GangState* const gang : pool.promised) {
    for (TaskState& task : gang->tasks) {
      if (task.promised && task.promised->node == node) visit(*task.promised);
    }
  }
}

}  // namespace

void settle_gpu_numbers(Pool& pool, NodeIndex node) {
  const bool are_there = !pool.nodes.holds_missing_gpus(node) &&
                         !pool.nodes.holds_missing_gpus(node, FreeWhen::kLater);
  if (are_there) return;
  // A task may need the number of a promise. The promise then gets that of a task that leaves.
  for_each_promise_on(pool, node, [&](const Booking& promised) { pool.nodes.unreserve(promised); });
  for (const Tenant& tenant : pool.tenants_of(node)) {
    TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
    const bool runs = task.phase == TaskPhase::kRunning || task.stuck;
    runs ? pool.nodes.unbook(task.held) : pool.nodes.end_release(task.held);
    task.held = pool.nodes.on_free_gpus(task.held);
    // The inverse of end_release() takes from kNow what it gave.
    runs ? pool.nodes.book(task.held) : pool.nodes.claim_reserved(task.held);
  }
  for_each_promise_on(pool, node, [&](Booking& promised) {
    promised = pool.nodes.on_free_gpus(promised, FreeWhen::kLater);
    pool.nodes.reserve(promised);
  });
}

namespace {

void nodes_changed(Pool& pool) {
  pool.dirty = true;
  pool.all_grew = true;
  ++pool.epoch;
}

/// No gang starts on the node any more: gangs with promises or reservations there get new ones.
void take_back_promises(Pool& pool, NodeIndex node) {
  const auto is_there = [&](const Booking& booking) { return booking.node == node; };
  const std::vector<GangState*> promised(pool.promised.begin(), pool.promised.end());
  for (GangState* const gang : promised) {
    const bool there = std::any_of(
        gang->tasks.begin(), gang->tasks.end(),
        [&](const TaskState& task) { return task.promised && is_there(*task.promised); });
    if (!there) continue;
    drop_promise(*gang);
    refresh(*gang);
  }
  for (size_t i = pool.kept.size(); i-- > 0;) {
    const std::vector<Booking>& bookings = pool.kept[i].bookings;
    if (std::any_of(bookings.begin(), bookings.end(), is_there)) {
      drop_reservation(pool, *pool.kept[i].gang);
    }
  }
}

/// Drops the promises that wait for the end of tasks of the gang.
void drop_promises_waiting_for(Cluster& cluster, const GangState& gang) {
  for (const TaskState& task : gang.tasks) {
    if (task.phase != TaskPhase::kLeaving) continue;
    const auto waiting = cluster.by_number.find(task.leaves_for.gang);
    const bool is_promised =
        waiting != cluster.by_number.end() && waiting->second->promise == task.leaves_for.promise;
    if (!is_promised) continue;
    drop_promise(*waiting->second);
    refresh(*waiting->second);
  }
}

/// Call when the node has become silent, or answers again. A gang with a task there is no victim
/// while it is silent. A promise that waits for the end of such a gang might wait for ever.
void settle_silence(Cluster& cluster, Pool& pool, NodeIndex node) {
  const bool is_silent = pool.nodes.node(node).silent;
  GangSet there;
  for (const Tenant& tenant : pool.tenants_of(node)) there.insert(tenant.gang);
  for (GangState* const gang : there) {
    if (is_silent) drop_promises_waiting_for(cluster, *gang);
    refresh(*gang);
  }
}

void set_in_pool(Cluster& cluster, Pool& pool, const Node& node) {
  const std::optional<NodeIndex> known = pool.nodes.find(node.name);
  if (known && node.cordoned) take_back_promises(pool, *known);
  const bool was_silent = known && pool.nodes.node(*known).silent;
  if (known && pool.nodes.node(*known).cordoned) --pool.cordoned;
  if (node.cordoned) ++pool.cordoned;
  pool.nodes.set(node);
  pool.had_nodes = true;
  cluster.pool_of_node[node.name] = &pool;
  nodes_changed(pool);
  if (!known) return;
  if (node.silent != was_silent) settle_silence(cluster, pool, *known);
  settle_gpu_numbers(pool, *known);
  if (!node.cordoned) drop_what_no_longer_fits(pool, *known);
}

void remove_from_pool(Cluster& cluster, Pool& pool, const std::string& name) {
  cluster.pool_of_node.erase(name);
  const std::optional<NodeIndex> node = pool.nodes.find(name);
  if (!node) return;
  take_back_promises(pool, *node);
  const std::vector<Tenant> tenants = pool.tenants_of(*node);
  for (const Tenant& tenant : tenants) {
    lose_node(*tenant.gang, tenant.task);
    refresh(*tenant.gang);
  }
  if (pool.nodes.node(*node).cordoned) --pool.cordoned;
  std::erase(pool.grown, *node);
  pool.nodes.remove(*node);
  nodes_changed(pool);
}

}  // namespace

void set_cluster_node(Cluster& cluster, const Node& node) {
  const auto moving = cluster.moving.find(node.name);
  if (moving != cluster.moving.end() && moving->second == node) return;
  const bool was_moving = cluster.moving.erase(node.name) > 0;
  Pool& target = cluster.pool_of(node.pool);
  const auto now = cluster.pool_of_node.find(node.name);
  if (!was_moving && now != cluster.pool_of_node.end() && now->second == &target) {
    // A cluster reports all its nodes when one of them has changed.
    const std::optional<NodeIndex> known = target.nodes.find(node.name);
    if (known && target.nodes.node(*known) == node) return;
  }
  if (now == cluster.pool_of_node.end() || now->second == &target) {
    set_in_pool(cluster, target, node);
    return;
  }
  Pool& leaving = *now->second;
  Node closed = node;
  closed.pool = leaving.name;
  closed.cordoned = true;
  set_in_pool(cluster, leaving, closed);
  cluster.moving.emplace(node.name, node);
  finish_moves(cluster);
}

void remove_cluster_node(Cluster& cluster, const std::string& name) {
  cluster.moving.erase(name);
  const auto pool = cluster.pool_of_node.find(name);
  if (pool != cluster.pool_of_node.end()) remove_from_pool(cluster, *pool->second, name);
}

void finish_moves(Cluster& cluster) {
  for (auto move = cluster.moving.begin(); move != cluster.moving.end();) {
    const auto& [name, node] = *move;
    Pool& leaving = *cluster.pool_of_node.at(name);
    if (!leaving.tenants_of(*leaving.nodes.find(name)).empty()) {
      ++move;
      continue;
    }
    remove_from_pool(cluster, leaving, name);
    set_in_pool(cluster, cluster.pool_of(node.pool), node);
    move = cluster.moving.erase(move);
  }
}

namespace {

class Writer {
 public:
  void add(int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(const std::string& value) {
    add(static_cast<int64_t>(value.size()));
    text_ += value;
  }
  void add(const std::vector<std::string>& values) {
    add(static_cast<int64_t>(values.size()));
    for (const std::string& value : values) add(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Equal for equal shapes, and for no others.
std::string signature(const Gang& gang) {
  Writer out;
  out.add(static_cast<int64_t>(gang.groups.size()));
  for (const TaskGroup& group : gang.groups) {
    const Claim& claim = group.claim;
    for (const int64_t value :
         {int64_t{claim.gpus}, int64_t{claim.gpu_share_milli}, claim.gpu_memory_bytes,
          claim.cpu_milli, claim.memory_bytes, int64_t{group.count}, int64_t{group.minimum},
          int64_t{group.launcher}}) {
      out.add(value);
    }
  }
  out.add(gang.pools);
  out.add(gang.gpu_models);
  out.add(gang.excluded_nodes);
  out.add(gang.tolerations);
  out.add(static_cast<int64_t>(gang.node_labels.size()));
  for (const auto& [label, value] : gang.node_labels) {
    out.add(label);
    out.add(value);
  }
  out.add(gang.required_topology);
  out.add(gang.preferred_topology);
  out.add(gang.packing ? static_cast<int64_t>(*gang.packing) : -1);
  return out.take();
}

}  // namespace

uint64_t ShapeTable::take(const Gang& gang) {
  const auto [entry, is_new] = shapes_.try_emplace(signature(gang));
  if (is_new) {
    entry->second.number = next_++;
    names_.emplace(entry->second.number, entry->first);
  }
  ++entry->second.gangs;
  return entry->second.number;
}

void ShapeTable::drop(uint64_t shape) {
  const auto name = names_.find(shape);
  if (name == names_.end()) return;
  const auto entry = shapes_.find(name->second);
  if (--entry->second.gangs > 0) return;
  shapes_.erase(entry);
  names_.erase(name);
}

}  // namespace muster::schedule
