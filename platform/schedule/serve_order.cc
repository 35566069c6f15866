#include "schedule/serve_order.h"

#include <algorithm>

namespace muster::schedule {

ServeOrder::ServeOrder(Pool& pool, Policy policy)
    : pool_(pool), policy_(policy), places_(pool.queues.size() + 1) {}

ServeOrder::Head ServeOrder::head_of(WaitClass& waiting, const GangState& gang) const {
  Head head{.sequence = gang.gang.sequence, .number = gang.number, .waiting = &waiting};
  if (policy_ == Policy::kFair) {
    head.negative_priority = -waiting.key.priority;
    head.state = waiting.key.state;
  }
  return head;
}

void ServeOrder::add(WaitClass& waiting) {
  drop(waiting);
  enter_at(waiting, waiting.waiters.begin());
}

void ServeOrder::enter_at(WaitClass& waiting, Waiters::const_iterator gang) {
  if (gang == waiting.waiters.end()) return;
  if (static_cast<size_t>(waiting.leaf) + 1 >= places_.size()) {
    places_.resize(pool_.queues.size() + 1);
  }
  const Head head = head_of(waiting, **gang);
  entered_.emplace(&waiting, Entered{head, gang});
  at(waiting.leaf).heads.insert(head);
  update(waiting.leaf);
}

void ServeOrder::drop(WaitClass& waiting) {
  const auto entered = entered_.find(&waiting);
  if (entered == entered_.end()) return;
  at(waiting.leaf).heads.erase(entered->second.head);
  entered_.erase(entered);
  update(waiting.leaf);
}

GangState* ServeOrder::head(const WaitClass& waiting) const {
  return *entered_.at(&waiting).gang;
}

void ServeOrder::skip_head(WaitClass& waiting) {
  const auto next = std::next(entered_.at(&waiting).gang);
  drop(waiting);
  enter_at(waiting, next);
}

const ServeOrder::Head* ServeOrder::first_below(ProjectIndex project) {
  while (!at(project).children.empty()) project = at(project).children.begin()->second;
  const std::set<Head>& heads = at(project).heads;
  return heads.empty() ? nullptr : &*heads.begin();
}

/// Into the set of the level above, under the key that it has now.
void ServeOrder::enter(ProjectIndex project) {
  const ProjectIndex parent = pool_.ledger.parent(project);
  Place& place = at(project);
  if (place.entered) at(parent).children.erase({place.key, project});
  const Head* const head = first_below(project);
  place.entered = head != nullptr;
  if (head == nullptr) return;
  place.key = policy_ == Policy::kFair
                  ? pool_.ledger.order_key(project, head->waiting->charge)
                  : OrderKey{.dominant_share_with_job = 0, .sequence = head->sequence};
  at(parent).children.emplace(place.key, project);
}

void ServeOrder::settle() {
  if (unsettled_.size() > 1) {
    std::sort(unsettled_.begin(), unsettled_.end());
    unsettled_.erase(std::unique(unsettled_.begin(), unsettled_.end()), unsettled_.end());
  }
  for (const ProjectIndex leaf : unsettled_) {
    if (static_cast<size_t>(leaf) + 1 >= places_.size()) continue;
    for (ProjectIndex level = leaf; level != kNoProject; level = pool_.ledger.parent(level)) {
      enter(level);
    }
  }
  unsettled_.clear();
}

WaitClass* ServeOrder::top() {
  settle();
  const Head* const head = first_below(kNoProject);
  return head == nullptr ? nullptr : head->waiting;
}

}  // namespace muster::schedule
