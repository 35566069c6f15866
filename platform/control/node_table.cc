#include "control/node_table.h"

#include <algorithm>
#include <utility>

#include "control/gang_tasks.h"
#include "control/unknown_name.h"
#include "engine/engine.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::Node;

namespace {

std::vector<std::string> pools_of(const std::vector<Node>& nodes) {
  std::set<std::string> others;
  for (const Node& node : nodes) others.insert(node.pool);
  std::vector<std::string> pools;
  const bool has_default = others.erase(std::string(job::kDefaultPool)) > 0;
  if (has_default || nodes.empty()) pools.emplace_back(job::kDefaultPool);
  pools.insert(pools.end(), others.begin(), others.end());
  return pools;
}

}  // namespace

NodeTable::Difference NodeTable::replace(std::vector<Node> nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const Node& left, const Node& right) { return left.name < right.name; });
  const std::vector<Node> before = std::exchange(nodes_, std::move(nodes));
  Difference difference;
  auto old = before.begin();
  const auto skip_until = [&](const std::string* name) {
    for (; old != before.end() && (name == nullptr || old->name < *name); ++old) {
      difference.gone.push_back(old->name);
    }
  };
  for (const Node& node : nodes_) {
    skip_until(&node.name);
    const bool is_known = old != before.end() && old->name == node.name;
    if (!is_known) difference.added.insert(node.name);
    if (!is_known || *old != node) difference.changed.push_back(node.name);
    if (!is_known) continue;
    if (engine::is_silent(node) != engine::is_silent(*old)) {
      difference.silence.emplace_back(node.name, engine::is_silent(node));
    }
    ++old;
  }
  skip_until(nullptr);
  std::vector<std::string> pools = pools_of(nodes_);
  difference.pools = pools != pools_;
  pools_ = std::move(pools);
  return difference;
}

const Node* NodeTable::find(const std::string& name) const {
  const auto found =
      std::lower_bound(nodes_.begin(), nodes_.end(), name,
                       [](const Node& node, const std::string& key) { return node.name < key; });
  return found == nodes_.end() || found->name != name ? nullptr : &*found;
}

Result<const Node*> NodeTable::known(const std::string& name) const {
  if (const Node* const node = find(name)) return node;
  return unknown_name("node", name, names(), "muster node list shows the nodes there are");
}

std::vector<std::string> NodeTable::names() const {
  std::vector<std::string> names;
  for (const Node& node : nodes_) names.push_back(node.name);
  return names;
}

PoolTotals NodeTable::totals() const {
  PoolTotals totals;
  for (const Node& node : nodes_) {
    totals[node.pool] +=
        {static_cast<int64_t>(node.gpus) * schedule::kWholeGpu, node.cpu_milli, node.memory_bytes};
  }
  return totals;
}

void NodeTable::set_cordoned(const std::string& name, bool cordoned) {
  if (cordoned) {
    cordoned_.insert(name);
  } else {
    cordoned_.erase(name);
  }
}

bool NodeTable::is_silent(const std::string& name) const {
  const Node* const node = find(name);
  return node != nullptr && engine::is_silent(*node);
}

bool NodeTable::is_closed(const std::string& name) const {
  const Node* const node = find(name);
  const bool closed_by_engine = node != nullptr && engine::is_closed(*node);
  return cordoned_.contains(name) || closed_by_engine || is_silent(name);
}

bool NodeTable::has(const SeatPlaces& places) const {
  return std::all_of(places.begin(), places.end(), [&](const auto& place) {
    if (!place) return true;
    const Node* const node = find(place->node);
    if (node == nullptr || engine::is_silent(*node)) return false;
    if (node->anonymous_gpus) return static_cast<int>(place->devices.size()) <= node->gpus;
    return std::all_of(place->devices.begin(), place->devices.end(),
                       [&](int device) { return device < node->gpus; });
  });
}

bool runs_on(const job::Job& job, const std::string& node) {
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const job::Task& task) {
    return task.phase != job::TaskPhase::kEnded && task.node == node;
  });
}

job::Fact running_reason(const job::Job& job, const NodeTable& nodes,
                         const std::optional<job::SlurmState>& in_slurm) {
  job::Runs reason;
  if (launch::resizes_live(job.spec)) reason.workers = workers_of(job, count_members(job));
  for (const std::string& name : nodes_of(job)) {
    const Node* const node = nodes.find(name);
    if (node == nullptr || !engine::is_silent(*node) || !runs_on(job, name)) continue;
    reason.silent.push_back({.node = name, .since = node->labels.at(engine::kSilentSince)});
  }
  reason.in_slurm = in_slurm;
  return reason;
}

}  // namespace muster::control
