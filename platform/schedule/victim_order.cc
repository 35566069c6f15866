#include "schedule/victim_order.h"

#include <algorithm>

namespace muster::schedule {

Unit unit_of(GangState& gang, const Pool& pool, std::vector<int> tasks, bool core) {
  const Entry& entry = entry_in(gang, pool);
  const std::vector<int> groups = groups_of_tasks(gang.gang);
  Unit unit{.gang = &gang, .leaf = entry.leaf, .tasks = std::move(tasks), .core = core};
  for (const int task : unit.tasks) {
    unit.amounts += entry.charge[static_cast<size_t>(groups[static_cast<size_t>(task)])];
  }
  return unit;
}

VictimOrder::VictimOrder(Pool& pool, Filter may_be_victim)
    : pool_(pool), may_be_victim_(std::move(may_be_victim)) {}

void VictimOrder::add(ProjectIndex leaf) {
  const ProjectQueue& queue = pool_.queue_of(leaf);
  Leaf& added = leaves_[leaf];
  added.extra = queue.extras.begin();
  added.core = queue.cores.begin();
  advance(leaf, added);
  update(leaf);
}

bool VictimOrder::take_extra(Leaf& leaf) {
  if (leaf.extras_left.empty()) return false;
  const int task = leaf.extras_left.back();
  leaf.extras_left.pop_back();
  leaf.taken[leaf.extras_of->number].insert(task);
  leaf.head = unit_of(*leaf.extras_of, pool_, {task}, false);
  return true;
}

void VictimOrder::advance(ProjectIndex index, Leaf& leaf) {
  const ProjectQueue& queue = pool_.queue_of(index);
  leaf.head.reset();
  while (!leaf.head) {
    if (take_extra(leaf)) return;
    const bool has_extra = leaf.extra != queue.extras.end();
    const bool has_core = leaf.core != queue.cores.end();
    if (!has_extra && !has_core) return;
    if (has_extra && (!has_core || leaf.extra->priority <= leaf.core->priority)) {
      GangState& gang = *(leaf.extra++)->gang;
      if (!may_be_victim_(gang)) continue;
      leaf.extras_left = extra_tasks(gang);
      std::reverse(leaf.extras_left.begin(), leaf.extras_left.end());
      leaf.extras_of = &gang;
      continue;
    }
    GangState& gang = *(leaf.core++)->gang;
    if (!may_be_victim_(gang)) continue;
    const std::set<int>& taken = leaf.taken[gang.number];
    std::vector<int> rest;
    for (size_t task = 0; task < gang.tasks.size(); ++task) {
      const bool runs = gang.tasks[task].phase == TaskPhase::kRunning;
      if (runs && !taken.contains(static_cast<int>(task))) rest.push_back(static_cast<int>(task));
    }
    if (!rest.empty()) leaf.head = unit_of(gang, pool_, std::move(rest), true);
  }
}

const Unit* VictimOrder::last_below(ProjectIndex project) {
  for (auto place = places_.find(project);
       place != places_.end() && !place->second.children.empty(); place = places_.find(project)) {
    project = std::prev(place->second.children.end())->second;
  }
  const auto leaf = leaves_.find(project);
  return leaf == leaves_.end() || !leaf->second.head ? nullptr : &*leaf->second.head;
}

void VictimOrder::enter(ProjectIndex project) {
  Place& above = places_[pool_.ledger.parent(project)];
  Place& place = places_[project];
  if (place.entered) above.children.erase({place.key, project});
  const Unit* const head = last_below(project);
  place.entered = head != nullptr;
  if (head == nullptr) return;
  place.key = pool_.ledger.order_key(project, kNothing - head->amounts);
  above.children.emplace(place.key, project);
}

void VictimOrder::update(ProjectIndex leaf) {
  for (ProjectIndex level = leaf; level != kNoProject; level = pool_.ledger.parent(level)) {
    enter(level);
  }
}

std::optional<Unit> VictimOrder::next() {
  if (last_ != kNoProject) update(last_);  // its books have changed since
  const Unit* const found = last_below(kNoProject);
  if (found == nullptr) return std::nullopt;
  Unit unit = *found;
  last_ = unit.leaf;
  advance(unit.leaf, leaves_.at(unit.leaf));
  return unit;
}

void VictimOrder::drop(ProjectIndex leaf) {
  leaves_.erase(leaf);
  update(leaf);
  if (last_ == leaf) last_ = kNoProject;
}

}  // namespace muster::schedule
