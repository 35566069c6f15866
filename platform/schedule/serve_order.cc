#include "schedule/serve_order.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::schedule {

ServeOrder::ServeOrder(Pool& pool, Policy policy)
    : pool_(pool),
      policy_(policy),
      number_(++pool.orders),
      places_(pool.queues.size()),
      projects_(pool.queues.size()) {}

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

void ServeOrder::add_later(ProjectIndex leaf,
                           const std::function<void(ProjectIndex)>& enter_classes) {
  if (!enter_classes_) enter_classes_ = enter_classes;
  if (static_cast<size_t>(leaf) >= places_.size()) places_.resize(pool_.queues.size());
  at(leaf).is_later = true;
  least_charge_ = least_of(least_charge_, pool_.queue_of(leaf).least_charge);
  update(leaf);
}

void ServeOrder::add_all() {
  const auto enter_classes = [this](ProjectIndex leaf) {
    for (const auto& [key, waiting] : pool_.queue_of(leaf).classes) add(*waiting);
  };
  for (size_t index = 0; index < pool_.queues.size(); ++index) {
    if (pool_.queues[index].classes.empty()) continue;
    const auto leaf = static_cast<ProjectIndex>(index);
    if (policy_ == Policy::kFair) {
      add_later(leaf, enter_classes);
    } else {
      enter_classes(leaf);
    }
  }
}

bool ServeOrder::is_later(ProjectIndex leaf) const {
  return leaf != kNoProject && static_cast<size_t>(leaf) < places_.size() &&
         places_[static_cast<size_t>(leaf)].is_later;
}

/// Most projects are dropped, so the few others are put in order again.
void ServeOrder::drop_later() {
  projects_ = ProjectHeaps<HeapOrder::kLeastFirst>(pool_.queues.size());
  unsettled_.clear();
  for (size_t project = 0; project < places_.size(); ++project) {
    places_[project].is_unsettled = places_[project].is_later = false;
    if (!places_[project].heads.empty()) update(static_cast<ProjectIndex>(project));
  }
}

void ServeOrder::enter_at(WaitClass& waiting, Waiters::const_iterator gang) {
  if (gang == waiting.waiters.end()) return;
  if (static_cast<size_t>(waiting.leaf) >= places_.size()) places_.resize(pool_.queues.size());
  waiting.served = {.by = number_, .head = (*gang)->number, .gang = gang};
  std::vector<Head>& heads = at(waiting.leaf).heads;
  if (heads.empty()) heads.reserve(pool_.queue_of(waiting.leaf).classes.size());
  heads.push_back(head_of(waiting, **gang));
  std::push_heap(heads.begin(), heads.end());
  update(waiting.leaf);
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

/// Among the children of the project above, under the key that it has now. A key grows with the
/// charge, so the least charge of all gives a bound also if the first gang below is another one.
void ServeOrder::enter(ProjectIndex project) {
  const ProjectIndex parent = pool_.ledger.parent(project);
  const ProjectIndex leaf = projects_.first_below(project);
  if (is_later(leaf)) {
    const Amounts& least = leaf == project ? pool_.queue_of(leaf).least_charge : least_charge_;
    return projects_.set(project, parent, pool_.ledger.order_key(project, least));
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
  ProjectIndex leaf = projects_.first_below(kNoProject);
  while (is_later(leaf)) {
    at(leaf).is_later = false;
    enter_classes_(leaf);
    update(leaf);
    settle();
    leaf = projects_.first_below(kNoProject);
  }
  const Head* const head = first_of(leaf);
  return head == nullptr ? nullptr : head->waiting;
}

}  // namespace muster::schedule
