#include "schedule/serve_order.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "schedule/cluster.h"
#include "schedule/gang_books.h"
#include "schedule/project_heaps.h"
#include "schedule/testing.h"

namespace muster::schedule {
namespace {

int below(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

// --- heaps of projects

template <HeapOrder kOrder>
void compare_heaps_with_sets(unsigned seed) {
  constexpr int kParents = 3;
  constexpr int kProjects = 40;
  std::mt19937 random(seed);
  ProjectHeaps<kOrder> heaps(5);
  std::map<ProjectIndex, std::set<std::pair<OrderKey, ProjectIndex>>> sets;
  std::map<ProjectIndex, OrderKey> keys;
  for (int step = 0; step < 400; ++step) {
    const ProjectIndex project = kParents + below(random, kProjects);
    const ProjectIndex parent = project % kParents;
    if (keys.contains(project)) sets[parent].erase({keys[project], project});
    if (below(random, 3) == 0) {
      heaps.erase(project, parent);
      keys.erase(project);
    } else {
      const OrderKey key{.negative_priority = below(random, 4), .sequence = random() % 3};
      heaps.set(project, parent, key);
      keys[project] = key;
      sets[parent].insert({key, project});
    }
    for (ProjectIndex one = 0; one < kParents; ++one) {
      const auto& children = sets[one];
      const ProjectIndex first = children.empty()                      ? kNoProject
                                 : kOrder == HeapOrder::kGreatestFirst ? children.rbegin()->second
                                                                       : children.begin()->second;
      ASSERT_EQ(heaps.first(one), first) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(ProjectHeaps, HaveTheFirstOfASortedSetOnTop) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    compare_heaps_with_sets<HeapOrder::kLeastFirst>(seed);
    compare_heaps_with_sets<HeapOrder::kGreatestFirst>(seed);
  }
}

// --- the order

/// The order as it is defined, without any index: a search through all classes.
class PlainOrder {
 public:
  PlainOrder(const Pool& pool, Policy policy) : pool_(pool), policy_(policy) {}

  void add(WaitClass& waiting) {
    heads_.erase(&waiting);
    if (!waiting.waiters.empty()) heads_[&waiting] = waiting.waiters.begin();
  }
  void drop(WaitClass& waiting) { heads_.erase(&waiting); }
  void skip_head(WaitClass& waiting) {
    if (++heads_.at(&waiting) == waiting.waiters.end()) heads_.erase(&waiting);
  }
  WaitClass* top() const { return first_below(kNoProject); }

 private:
  auto place_of(const WaitClass& waiting) const {
    const GangState& gang = **heads_.at(const_cast<WaitClass*>(&waiting));
    const bool is_fair = policy_ == Policy::kFair;
    return std::tuple(is_fair ? -waiting.key.priority : 0,
                      is_fair ? waiting.key.state : ElasticState::kBelowMinimum, gang.gang.sequence,
                      gang.number);
  }

  OrderKey key_of(ProjectIndex project, const WaitClass& head) const {
    if (policy_ == Policy::kFair) return pool_.ledger.order_key(project, head.charge);
    return {.sequence = std::get<2>(place_of(head))};
  }

  WaitClass* first_below(ProjectIndex project) const {
    WaitClass* first = nullptr;
    for (const auto& [waiting, gang] : heads_) {
      if (waiting->leaf != project) continue;
      if (first == nullptr || place_of(*waiting) < place_of(*first)) first = waiting;
    }
    std::optional<std::pair<OrderKey, ProjectIndex>> best;
    for (const ProjectIndex child : pool_.ledger.children(project)) {
      WaitClass* const head = first_below(child);
      if (head == nullptr) continue;
      const std::pair key(key_of(child, *head), child);
      if (best && !(key < *best)) continue;
      best = key;
      first = head;
    }
    return first;
  }

  const Pool& pool_;
  Policy policy_;
  std::map<WaitClass*, Waiters::const_iterator> heads_;
};

/// Gangs that wait in a random tree of projects, which hold random amounts.
class WaitingCrowd {
 public:
  explicit WaitingCrowd(unsigned seed) : random_(seed) {
    cluster_.projects = random_projects();
    Pool& pool = cluster_.pool_of(kDefaultPool);
    for (int node = 0; node < 8; ++node) {
      set_cluster_node(cluster_, testing::node("n" + std::to_string(node), 8));
    }
    for (int gang = 0; gang < 60; ++gang) submit(gang);
    for (const Project& project : cluster_.projects) hold(pool.ledger.find(project.name));
    settle_books(pool);
  }

  Pool& pool() { return cluster_.pool_of(kDefaultPool); }
  std::mt19937& random() { return random_; }

  std::vector<WaitClass*> classes() {
    std::vector<WaitClass*> classes;
    for (ProjectQueue& queue : pool().queues) {
      for (auto& [key, waiting] : queue.classes) classes.push_back(waiting.get());
    }
    return classes;
  }

  void hold(ProjectIndex project) {
    if (!is_leaf(pool(), project)) return;
    pool().ledger.allocate(project, {int64_t{below(random_, 9)} * kWholeGpu, 0, 0}, true);
  }

  /// The gang no longer waits.
  void take_away(GangState& gang) { cluster_.forget_gang(gang); }

 private:
  std::vector<Project> random_projects() {
    std::vector<Project> list;
    for (int i = 0; i < 12; ++i) {
      testing::Share share{.deserved = below(random_, 6),
                           .weight = double(below(random_, 3)),
                           .priority = 100 + below(random_, 2)};
      if (i > 2 && below(random_, 3) > 0) share.parent = "p" + std::to_string(below(random_, i));
      list.push_back(testing::project("p" + std::to_string(i), share));
    }
    return testing::projects(std::move(list));
  }

  void submit(int number) {
    static constexpr int kPriorities[] = {50, 50, 75, 100};
    Gang gang =
        testing::gang("g" + std::to_string(number), "p" + std::to_string(below(random_, 12)),
                      1 + below(random_, 3), 1 + below(random_, 2), kPriorities[below(random_, 4)]);
    gang.sequence = static_cast<uint64_t>(below(random_, 40));
    refresh(cluster_.enter_gang(std::move(gang)));
  }

  std::mt19937 random_;
  Cluster cluster_;
};

enum class Entered { kAtOnce, kLater };

/// Serves, drops and changes the first class, and compares it with that of a search each time.
void compare_with_a_search(unsigned seed, Policy policy, Entered entered) {
  WaitingCrowd crowd(seed);
  ServeOrder order(crowd.pool(), policy);
  PlainOrder plain(crowd.pool(), policy);
  for (WaitClass* const waiting : crowd.classes()) {
    plain.add(*waiting);
    if (entered == Entered::kAtOnce) order.add(*waiting);
  }
  if (entered == Entered::kLater) order.add_all();
  for (int step = 0; step < 200; ++step) {
    WaitClass* const first = plain.top();
    ASSERT_EQ(order.top(), first) << "seed " << seed << ", step " << step;
    if (first == nullptr) return;
    switch (below(crowd.random(), 4)) {
      case 0:
        order.drop(*first);
        plain.drop(*first);
        break;
      case 1:
        crowd.hold(first->leaf);
        order.update(first->leaf);
        break;
      case 2:
        crowd.take_away(first->head());
        order.add(*first);
        plain.add(*first);
        break;
      default:
        order.skip_head(*first);
        plain.skip_head(*first);
    }
  }
}

TEST(ServeOrder, ServesTheClassThatASearchThroughAllClassesFinds) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Policy policy = seed % 3 == 0 ? Policy::kFifo : Policy::kFair;
    compare_with_a_search(seed, policy, Entered::kAtOnce);
  }
}

TEST(ServeOrder, ServesTheSameClassIfProjectsAreEnteredWhenTheyMayBeFirst) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    compare_with_a_search(seed, Policy::kFair, Entered::kLater);
  }
}

/// Requests are refused one by one, as in an allocation, and projects that were not looked at lose or
/// get resources.
void compare_while_requests_are_refused(unsigned seed) {
  WaitingCrowd crowd(seed);
  Pool& pool = crowd.pool();
  std::set<const SharedRequest*> refused;
  const auto is_served = [&](const SharedRequest& ask) { return !refused.contains(&ask); };
  ServeOrder order(pool, Policy::kFair);
  PlainOrder plain(pool, Policy::kFair);
  for (WaitClass* const waiting : crowd.classes()) plain.add(*waiting);
  const auto enter_classes = [&](ProjectIndex leaf) {
    for (const QueuedClass& one : classes_in_order(pool.queue_of(leaf))) {
      if (is_served(*one.ask)) order.add(one);
    }
  };
  pool.rankings.update(pool);
  order.add_ranked(pool.rankings.waiting(), pool.rankings.least_charge(), enter_classes);
  for (int step = 0; step < 100; ++step) {
    WaitClass* const first = plain.top();
    ASSERT_EQ(order.top(), first) << "seed " << seed << ", step " << step;
    if (first == nullptr) return;
    const ProjectIndex any = below(crowd.random(), static_cast<int>(pool.queues.size()));
    switch (below(crowd.random(), 4)) {
      case 0:
        refused.insert(first->ask);
        for (WaitClass* const waiting : first->ask->classes) {
          order.drop(*waiting);
          plain.drop(*waiting);
        }
        break;
      case 1:
        crowd.hold(any);
        order.update(any);
        break;
      case 2:
        crowd.take_away(first->head());
        order.add(*first);
        plain.add(*first);
        break;
      default:
        order.drop(*first);
        plain.drop(*first);
    }
  }
}

TEST(ServeOrder, ServesTheSameClassWhileRequestsAreRefused) {
  for (unsigned seed = 0; seed < 600; ++seed) compare_while_requests_are_refused(seed);
}

}  // namespace
}  // namespace muster::schedule
