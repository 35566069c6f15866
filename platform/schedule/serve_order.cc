#include "schedule/serve_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::schedule {

ServeOrder::ServeOrder(Pool& pool, Policy policy)
    : pool_(pool), policy_(policy), number_(++pool.orders), projects_(0) {}

/// Many orders stay empty. There is one place for each project.
void ServeOrder::make_places() {
  if (places_.empty()) projects_ = ProjectHeaps<HeapOrder::kLeastFirst>(pool_.queues.size());
  if (places_.size() < pool_.queues.size()) places_.resize(pool_.queues.size());
}

ServeOrder::Head ServeOrder::head_of(WaitClass& waiting, const GangState& gang) const {
  Head head{.sequence = gang.gang.sequence, .number = gang.number, .waiting = &waiting};
  if (policy_ == Policy::kFair) {
    head.negative_priority = -waiting.key.priority;
    head.state = waiting.key.state;
  }
  return head;
}

/// Whether the class is in the order, and this is the head that it has now.
bool ServeOrder::is_in(const Head& head) const {
  const Served& served = head.waiting->served;
  return served.by == number_ && served.head == head.number;
}

void ServeOrder::add(WaitClass& waiting) {
  drop(waiting);
  enter_at(waiting, waiting.waiters.begin());
}

void ServeOrder::add_ranked(const ProjectRanking& ranking, const Amounts& least_charge,
                            EnterClasses enter_classes) {
  make_places();
  ranking_ = &ranking;
  least_charge_ = least_charge;
  enter_classes_ = std::move(enter_classes);
}

void ServeOrder::add_all() {
  const auto enter_classes = [this](ProjectIndex leaf) {
    for (const QueuedClass& one : classes_in_order(pool_.queue_of(leaf))) add(one);
  };
  if (policy_ == Policy::kFair) {
    pool_.rankings.update(pool_);
    add_ranked(pool_.rankings.by_first_class(), pool_.rankings.least_charge(), enter_classes);
    return;
  }
  for (size_t leaf = 0; leaf < pool_.queues.size(); ++leaf) {
    enter_classes(static_cast<ProjectIndex>(leaf));
  }
}

bool ServeOrder::is_later(ProjectIndex leaf) const {
  if (leaf == kNoProject || static_cast<size_t>(leaf) >= places_.size()) return false;
  const Place& place = places_[static_cast<size_t>(leaf)];
  return place.is_later || (ranking_ != nullptr && !place.is_taken && ranking_->has_leaf(leaf));
}

/// From now on the project stands where this order puts it.
void ServeOrder::take(ProjectIndex project) {
  Place& place = at(project);
  if (ranking_ == nullptr || std::exchange(place.is_taken, true)) return;
  place.is_later = ranking_->has_leaf(project);
}

ProjectIndex ServeOrder::first_ranked(ProjectIndex parent) {
  if (ranking_ == nullptr) return kNoProject;
  const std::vector<ProjectIndex>& children = ranking_->children(parent);
  size_t& next = parent == kNoProject ? next_ranked_ : at(parent).next_ranked;
  while (next < children.size() && at(children[next]).is_taken) ++next;
  return next < children.size() ? children[next] : kNoProject;
}

/// The first child among the children that this order has sorted and the children in the ranking.
ProjectIndex ServeOrder::first(ProjectIndex parent) {
  const ProjectIndex own = projects_.first(parent);
  const ProjectIndex ranked = first_ranked(parent);
  if (own == kNoProject || ranked == kNoProject) return own == kNoProject ? ranked : own;
  const auto order = projects_.key(own) <=> ranking_->key(ranked);
  return order < 0 || (order == 0 && own < ranked) ? own : ranked;
}

/// The first child of the first child, and so on, down to a project without children.
ProjectIndex ServeOrder::first_below(ProjectIndex project) {
  for (ProjectIndex next = first(project); next != kNoProject; next = first(project)) {
    project = next;
  }
  return project;
}

/// Most projects are dropped, so the few others are put in order again.
void ServeOrder::drop_later() {
  projects_ = ProjectHeaps<HeapOrder::kLeastFirst>(pool_.queues.size());
  ranking_ = nullptr;
  unsettled_.clear();
  for (size_t project = 0; project < places_.size(); ++project) {
    places_[project].is_unsettled = places_[project].is_later = false;
    if (!places_[project].heads.empty()) update(static_cast<ProjectIndex>(project));
  }
}

void ServeOrder::enter_at(WaitClass& waiting, Waiters::const_iterator gang) {
  if (gang == waiting.waiters.end()) return;
  waiting.served = {.by = number_, .head = (*gang)->number, .gang = gang};
  push(waiting.leaf, head_of(waiting, **gang));
}

void ServeOrder::add(const QueuedClass& queued) {
  WaitClass& waiting = *queued.waiting;
  drop(waiting);
  waiting.served = {.by = number_, .head = queued.number, .gang = waiting.waiters.begin()};
  Head head{.sequence = queued.sequence, .number = queued.number, .waiting = &waiting};
  if (policy_ == Policy::kFair) {
    head.negative_priority = queued.negative_priority;
    head.state = queued.state;
  }
  push(waiting.leaf, head);
}

void ServeOrder::push(ProjectIndex leaf, const Head& head) {
  make_places();
  std::vector<Head>& heads = at(leaf).heads;
  if (heads.empty()) heads.reserve(pool_.queue_of(leaf).classes.size());
  heads.push_back(head);
  std::push_heap(heads.begin(), heads.end());
  update(leaf);
}

void ServeOrder::drop(WaitClass& waiting) {
  if (waiting.served.by != number_) return;
  waiting.served.by = 0;
  update(waiting.leaf);
}

void ServeOrder::skip_head(WaitClass& waiting) {
  const auto next = std::next(waiting.served.gang);
  const bool was_settled = unsettled_.empty();
  drop(waiting);
  enter_at(waiting, next);
  // The keys depend on the charge of the first gang alone: if that stays, the projects stay where
  // they are.
  if (!was_settled || policy_ != Policy::kFair) return;
  const Head* const head = first_of(waiting.leaf);
  if (head == nullptr || !(head->waiting->charge == waiting.charge)) return;
  at(waiting.leaf).is_unsettled = false;
  unsettled_.clear();
}

void ServeOrder::update(ProjectIndex leaf) {
  if (static_cast<size_t>(leaf) >= places_.size()) return;
  if (!std::exchange(at(leaf).is_unsettled, true)) unsettled_.push_back(leaf);
}

const ServeOrder::Head* ServeOrder::first_of(ProjectIndex leaf) {
  if (leaf == kNoProject || static_cast<size_t>(leaf) >= places_.size()) return nullptr;
  std::vector<Head>& heads = at(leaf).heads;
  while (!heads.empty() && !is_in(heads.front())) {
    std::pop_heap(heads.begin(), heads.end());
    heads.pop_back();
  }
  return heads.empty() ? nullptr : &heads.front();
}

/// What the project is charged, at least, for the first gang below it, which is of `leaf`. A key
/// grows with the charge, so the least charge of all gives a bound also if the first gang is of
/// another project.
const Amounts& ServeOrder::bound_of(ProjectIndex project, ProjectIndex leaf) const {
  return leaf == project ? pool_.queue_of(leaf).least_charge : least_charge_;
}

/// Among the children of the project above, under the key that it has now.
void ServeOrder::enter(ProjectIndex project) {
  take(project);
  const ProjectIndex parent = pool_.ledger.parent(project);
  const ProjectIndex leaf = first_below(project);
  if (is_later(leaf)) {
    return projects_.set(project, parent, pool_.ledger.order_key(project, bound_of(project, leaf)));
  }
  const Head* const head = first_of(leaf);
  if (head == nullptr) return projects_.erase(project, parent);
  projects_.set(project, parent,
                policy_ == Policy::kFair
                    ? pool_.ledger.order_key(project, head->waiting->charge)
                    : OrderKey{.dominant_share_with_job = 0, .sequence = head->sequence});
}

/// Level by level, so that a project is entered once for all changes below it.
void ServeOrder::settle() {
  while (!unsettled_.empty()) {
    above_.clear();
    for (const ProjectIndex project : unsettled_) {
      at(project).is_unsettled = false;
      enter(project);
      const ProjectIndex parent = pool_.ledger.parent(project);
      if (parent == kNoProject || std::exchange(at(parent).is_unsettled, true)) continue;
      above_.push_back(parent);
    }
    std::swap(unsettled_, above_);
  }
}

WaitClass* ServeOrder::top() {
  settle();
  ProjectIndex leaf = first_below(kNoProject);
  while (is_later(leaf)) {
    take(leaf);
    at(leaf).is_later = false;
    enter_classes_(leaf);
    update(leaf);
    settle();
    leaf = first_below(kNoProject);
  }
  const Head* const head = first_of(leaf);
  return head == nullptr ? nullptr : head->waiting;
}

}  // namespace muster::schedule
