// Nodes that come, change and go while gangs run on them.
#include <algorithm>

#include "schedule/cluster.h"
#include "schedule/gang_books.h"
#include "schedule/reservation.h"

namespace muster::schedule {

namespace {

void nodes_changed(Pool& pool) {
  pool.dirty = true;
  pool.all_grew = true;
  ++pool.epoch;
}

/// Nobody starts on it any more: what was promised or kept there is looked for anew.
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

void set_in_pool(Cluster& cluster, Pool& pool, const Node& node) {
  const std::optional<NodeIndex> known = pool.nodes.find(node.name);
  if (known && node.cordoned) take_back_promises(pool, *known);
  if (known && pool.nodes.node(*known).cordoned) --pool.cordoned;
  if (node.cordoned) ++pool.cordoned;
  pool.nodes.set(node);
  cluster.pool_of_node[node.name] = &pool;
  nodes_changed(pool);
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
  cluster.moving.erase(node.name);
  Pool& wanted = cluster.pool_of(node.pool);
  const auto now = cluster.pool_of_node.find(node.name);
  if (now == cluster.pool_of_node.end() || now->second == &wanted) {
    set_in_pool(cluster, wanted, node);
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

}  // namespace muster::schedule
