#include "schedule/project_ranking.h"

#include <algorithm>
#include <optional>

#include "schedule/pool.h"

namespace muster::schedule {

const std::vector<ProjectIndex>& ProjectRanking::children(ProjectIndex parent) const {
  static const std::vector<ProjectIndex> none;
  return index_of(parent) < places_.size() ? places_[index_of(parent)].children : none;
}

bool ProjectRanking::has_leaf(ProjectIndex project) const {
  return index_of(project) < places_.size() && places_[index_of(project)].is_leaf;
}

/// The place at which a project with this key belongs.
std::vector<ProjectIndex>::iterator ProjectRanking::position_of(std::vector<ProjectIndex>& children,
                                                                ProjectIndex project,
                                                                const OrderKey& key) {
  return std::lower_bound(children.begin(), children.end(), project,
                          [&](ProjectIndex one, ProjectIndex) {
                            const auto order = at(one).key <=> key;
                            return order == 0 ? one < project : order < 0;
                          });
}

void ProjectRanking::insert(ProjectIndex project, ProjectIndex parent, const OrderKey& key) {
  std::vector<ProjectIndex>& children = at(parent).children;
  children.insert(position_of(children, project, key), project);
  Place& place = at(project);
  place.key = key;
  place.parent = parent;
  place.is_entered = true;
}

void ProjectRanking::take_out(ProjectIndex project) {
  Place& place = at(project);
  std::vector<ProjectIndex>& children = at(place.parent).children;
  children.erase(position_of(children, project, place.key));
  place.is_entered = false;
  place.key = {};
  place.parent = kNoProject;
}

void ProjectRanking::change(ProjectIndex project, const OrderKey& key) {
  if (index_of(project) >= places_.size()) return;
  const Place& place = at(project);
  if (!place.is_entered || place.key == key) return;
  const ProjectIndex parent = place.parent;
  take_out(project);
  insert(project, parent, key);
}

void ProjectRanking::enter_leaf(const Ledger& ledger, ProjectIndex leaf, const OrderKey& key,
                                const Amounts& least) {
  at(leaf).is_leaf = true;
  if (at(leaf).is_entered) return change(leaf, key);
  insert(leaf, ledger.parent(leaf), key);
  for (ProjectIndex level = ledger.parent(leaf); level != kNoProject && !at(level).is_entered;
       level = ledger.parent(level)) {
    insert(level, ledger.parent(level), ledger.order_key(level, least));
  }
}

void ProjectRanking::erase_leaf(ProjectIndex leaf) {
  if (!has_leaf(leaf)) return;
  at(leaf).is_leaf = false;
  ProjectIndex level = leaf;
  while (level != kNoProject && at(level).children.empty()) {
    const ProjectIndex parent = at(level).parent;
    take_out(level);
    level = parent;
  }
}

void ProjectRanking::clear(size_t projects) {
  places_.resize(projects + 1);
  for (Place& place : places_) {
    place.children.clear();
    place.key = {};
    place.parent = kNoProject;
    place.is_entered = place.is_leaf = false;
  }
}

void ProjectRanking::append(const Ledger& ledger, ProjectIndex leaf, const OrderKey& key,
                            const Amounts& least) {
  at(leaf).is_leaf = true;
  for (ProjectIndex level = leaf; level != kNoProject && !at(level).is_entered;
       level = ledger.parent(level)) {
    Place& place = at(level);
    place.is_entered = true;
    place.key = level == leaf ? key : ledger.order_key(level, least);
    place.parent = ledger.parent(level);
    at(place.parent).children.push_back(level);
  }
}

void ProjectRanking::sort() {
  for (Place& place : places_) {
    std::sort(place.children.begin(), place.children.end(),
              [this](ProjectIndex one, ProjectIndex other) {
                const auto order = at(one).key <=> at(other).key;
                return order == 0 ? one < other : order < 0;
              });
  }
}

namespace {

/// Beyond this part of all projects, it costs less to put all of them in order.
constexpr size_t kPartThatIsMany = 8;

/// Whether gangs of the project stand in the ranking of waiting projects. A project with subprojects
/// has no waiting gangs, but may have classes until the end of a plan.
bool waits(const Pool& pool, ProjectIndex project) {
  return !pool.queues[static_cast<size_t>(project)].classes.empty() &&
         pool.ledger.children(project).empty();
}

bool least_may_reclaim(const Pool& pool, ProjectIndex project) {
  const ProjectQueue& queue = pool.queues[static_cast<size_t>(project)];
  return pool.ledger.may_reclaim(project, queue.least_charge, true);
}

/// The first class of a waiting project; nullptr: the project has no class.
const QueuedClass* first_class(Pool& pool, ProjectIndex project) {
  const auto& classes = classes_in_order(pool.queues[static_cast<size_t>(project)]);
  return classes.empty() || !waits(pool, project) ? nullptr : &classes.front();
}

OrderKey bound_of(const Pool& pool, ProjectIndex project) {
  return pool.ledger.order_key(project, pool.queues[static_cast<size_t>(project)].least_charge);
}

}  // namespace

void ProjectRankings::build(Pool& pool) {
  least_charge_ = pool.least_charge;
  waiting_.clear(pool.queues.size());
  by_first_class_.clear(pool.queues.size());
  reclaiming_.clear(pool.queues.size());
  for (size_t index = 0; index < pool.queues.size(); ++index) {
    const auto project = static_cast<ProjectIndex>(index);
    if (!waits(pool, project)) continue;
    const OrderKey key = bound_of(pool, project);
    waiting_.append(pool.ledger, project, key, least_charge_);
    if (const QueuedClass* const first = first_class(pool, project)) {
      by_first_class_.append(pool.ledger, project,
                             pool.ledger.order_key(project, first->waiting->charge), least_charge_);
    }
    if (least_may_reclaim(pool, project)) {
      reclaiming_.append(pool.ledger, project, key, least_charge_);
    }
  }
  waiting_.sort();
  by_first_class_.sort();
  reclaiming_.sort();
}

void ProjectRankings::update(Pool& pool, ProjectIndex project) {
  if (static_cast<size_t>(project) >= pool.queues.size()) return;
  if (!pool.ledger.children(project).empty()) {
    const OrderKey key = pool.ledger.order_key(project, least_charge_);
    waiting_.change(project, key);
    by_first_class_.change(project, key);
    reclaiming_.change(project, key);
    return;
  }
  rank_by_first_class(pool, project);
  if (!waits(pool, project)) {
    waiting_.erase_leaf(project);
    reclaiming_.erase_leaf(project);
    return;
  }
  const OrderKey key = bound_of(pool, project);
  waiting_.enter_leaf(pool.ledger, project, key, least_charge_);
  if (least_may_reclaim(pool, project)) {
    reclaiming_.enter_leaf(pool.ledger, project, key, least_charge_);
  } else {
    reclaiming_.erase_leaf(project);
  }
}

void ProjectRankings::rank_by_first_class(Pool& pool, ProjectIndex project) {
  const QueuedClass* const first = first_class(pool, project);
  if (first == nullptr) return by_first_class_.erase_leaf(project);
  by_first_class_.enter_leaf(pool.ledger, project,
                             pool.ledger.order_key(project, first->waiting->charge), least_charge_);
}

void ProjectRankings::update(Pool& pool) {
  const std::optional<std::vector<ProjectIndex>> changed = pool.ledger.take_changes();
  const bool are_many = !changed || changed->size() * kPartThatIsMany > pool.queues.size();
  if (are_many || !(least_charge_ == pool.least_charge)) return build(pool);
  for (const ProjectIndex project : *changed) update(pool, project);
}

bool ProjectRankings::is_stale(Pool& pool) {
  update(pool);
  ProjectRankings fresh;
  fresh.build(pool);
  return !(waiting_ == fresh.waiting_ && by_first_class_ == fresh.by_first_class_ &&
           reclaiming_ == fresh.reclaiming_);
}

}  // namespace muster::schedule
