#include "schedule/cycle.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "schedule/explain.h"
#include "schedule/gang_books.h"
#include "schedule/reservation.h"
#include "schedule/reserved_limits.h"

namespace muster::schedule {

void start(Cycle& cycle, GangState& gang, Pool& pool, const std::vector<int>& tasks,
           const std::vector<Booking>& bookings) {
  if (gang.started_in != cycle.number) {
    gang.started_in = cycle.number;
    gang.start_in_plan = cycle.plan.starts.size();
    cycle.plan.starts.push_back({.id = gang.gang.id});
  }
  PlannedStart& start = cycle.plan.starts[gang.start_in_plan];
  for (size_t i = 0; i < tasks.size(); ++i) {
    settle_in(gang, pool, tasks[i], bookings[i]);
    start.tasks.push_back(tasks[i]);
    start.places.push_back(pool.nodes.place_of(bookings[i]));
  }
  if (!gang.started) gang.started = cycle.now;
  gang.reported_reason.reset();
  for (const PoolEntry& entry : gang.entries) drop_reservation(*entry.pool, gang);
  refresh(gang);
}

bool is_protected(const Cycle& cycle, Pool& pool, const GangState& gang,
                  Milliseconds Project::* minimum) {
  if (!cycle.has_min_runtimes) return false;
  const auto project = cycle.projects.find(gang.gang.project);
  if (project == cycle.projects.end() || !gang.started) return false;
  const Time until = *gang.started + project->second.*minimum;
  // A start in the future (the clock was set back) does not show how long the gang has run.
  if (until <= cycle.now || *gang.started > cycle.now) return false;
  pool.look_again_at(until);
  return true;
}

void set_verdict(Pool& pool, WaitClass& waiting, Constraint constraint) {
  if (waiting.constraint == constraint) return;
  waiting.constraint = constraint;
  waiting.changed = true;
  pool.explain_later(waiting);
  if (!waits_for_room(waiting)) pool.doubt(waiting);
}

std::optional<Time> forbears_until(const Options& options, const GangState& gang, Time now) {
  const Time until = gang.gang.submitted + options.forbearance;
  // A submission in the future (the clock was set back) does not show how long the gang waits.
  return gang.gang.submitted <= now && now < until ? std::optional<Time>(until) : std::nullopt;
}

bool has_lesser_running(const Pool& pool, const WaitClass& waiting) {
  const std::set<VictimKey>& cores = pool.queues[static_cast<size_t>(waiting.leaf)].cores;
  return !cores.empty() && cores.begin()->priority < waiting.key.priority;
}

GangState* first_that_may_evict(Cycle& cycle, Pool& pool, const WaitClass& waiting) {
  constexpr int kMostLookedAt = 64;
  int left = kMostLookedAt;
  for (GangState* const gang : waiting.waiters) {
    if (left-- == 0) return nullptr;
    const bool cools = gang->cools_until && *gang->cools_until > cycle.now;
    const std::optional<Time> forbears = forbears_until(cycle.options, *gang, cycle.now);
    if (!cools && !forbears) return gang;
    if (cools) pool.look_again_at(*gang->cools_until);
    if (forbears) pool.look_again_at(*forbears);
  }
  return nullptr;
}

void keep_promises(Cycle& cycle, Pool& pool) {
  const std::vector<GangState*> promised(pool.promised.begin(), pool.promised.end());
  for (GangState* const gang : promised) {
    std::vector<int> tasks;
    std::vector<Booking> bookings;
    bool ready = gang->leaving_for_it == 0;
    for (size_t task = 0; task < gang->tasks.size() && ready; ++task) {
      const TaskState& state = gang->tasks[task];
      if (!state.promised) continue;
      ready = state.phase == TaskPhase::kOpen && pool.nodes.can_claim_reserved(*state.promised);
      tasks.push_back(static_cast<int>(task));
      bookings.push_back(*state.promised);
    }
    // Two tasks of it may be promised parts of one node: each must see the other's taken.
    size_t claimed = 0;
    while (ready && claimed < bookings.size()) {
      ready = pool.nodes.can_claim_reserved(bookings[claimed]);
      if (ready) pool.nodes.claim_reserved(bookings[claimed++]);
    }
    if (!ready) {
      // The end of a release adds to kNow what the claim took from it.
      while (claimed > 0) pool.nodes.end_release(bookings[--claimed]);
      drop_lost_promise(pool, *gang);
      continue;
    }
    for (const int task : tasks) gang->tasks[static_cast<size_t>(task)].promised.reset();
    start(cycle, *gang, pool, tasks, bookings);
  }
}

// Free resources go to the gang that is served next. No gang that fits and may start is held back:
// the order alone makes the division fair.

namespace {

// How many of a class that is blocked by reservations are looked at for one that ends in time.
constexpr int kMostLookedAtToPass = 64;
// Requests of so many classes are tried before any class is put in order.
constexpr size_t kManyClasses = 4;

class Allocation {
 public:
  Allocation(Cycle& cycle, Pool& pool, bool may_defer)
      : cycle_(cycle),
        pool_(pool),
        may_defer_(may_defer),
        reservations_(cycle, pool),
        order_(pool, cycle.options.policy) {}

  void run() {
    for (auto& [key, ask] : pool_.asks) ask.in_order.clear();
    if (!needs_serve_order()) probe_asks();
    refuse_fresh_classes();
    hold_room_for_new_heads();
    enter_all_that_may_start();
    const bool strict = cycle_.options.policy == Policy::kFifo;
    while (WaitClass* const waiting = top()) {
      if (!serve(*waiting) && strict) return;
    }
  }

 private:
  // Of classes whose request is known to be refused, only those are visited that are in a list of
  // the pool: a plan must not cost time for each class that waits.

  /// Whether gangs with this request have to be tried.
  bool may_be_granted(const SharedRequest& ask) const {
    return is_not_refused(ask) || needs_serve_order();
  }

  /// While a gang has a reservation, requests of few classes are served even if they are known to fit
  /// nowhere, since the first class of a project stands for it in the order.
  bool is_not_refused(const SharedRequest& ask) const {
    const bool stands_for_its_project = !pool_.kept.empty() && ask.classes.size() < kManyClasses;
    return !ask.shortage || ask.only_reserved || stands_for_its_project;
  }

  void refuse_fresh_classes() {
    for (WaitClass* const waiting : pool_.unsure) {
      const bool is_fresh = !waiting->waiters.empty() && waiting->constraint == Constraint::kNone;
      if (is_fresh && !may_be_granted(*waiting->ask)) refuse_room(*waiting);
    }
  }

  /// From the most important class of a project down.
  void hold_room_for_new_heads() {
    std::erase_if(pool_.new_heads, [&](WaitClass* waiting) {
      waiting->has_new_head =
          !waiting->waiters.empty() &&
          (cycle_.now < waiting->head().gang.submitted + cycle_.options.forbearance ||
           holds_room_until(*waiting).has_value());
      return !waiting->has_new_head;
    });
    std::sort(pool_.new_heads.begin(), pool_.new_heads.end(),
              [](const WaitClass* left, const WaitClass* right) {
                return std::tie(left->leaf, right->key) < std::tie(right->leaf, left->key);
              });
    for (WaitClass* const waiting : pool_.new_heads) {
      const bool is_held = is_held_back(waiting->leaf, waiting->key.priority);
      if (is_held || may_be_granted(*waiting->ask)) continue;
      hold_room_for(*waiting);
    }
  }

  void enter_all_that_may_start() {
    for (const auto& [key, ask] : pool_.asks) {
      if (may_be_granted(ask)) may_start_ += ask.classes.size();
    }
    // The ranking is by fair share: other policies serve projects in another order.
    const bool is_ranked = cycle_.options.policy == Policy::kFair;
    if (is_ranked && are_many() && !needs_serve_order()) {
      enter_projects_later();
    } else {
      for (auto& [key, ask] : pool_.asks) {
        if (!may_be_granted(ask)) continue;
        for (WaitClass* const waiting : ask.classes) enter(*waiting);
      }
    }
    // A class that waits for its share may find neither share nor room.
    std::erase_if(pool_.unsure, [&](WaitClass* waiting) {
      waiting->is_unsure = !waiting->waiters.empty() && !waits_for_room(*waiting);
      if (waiting->is_unsure && !may_be_granted(*waiting->ask)) enter(*waiting);
      return !waiting->is_unsure;
    });
  }

  /// Whether so many classes may start that most will be refused unseen, because the first ones take
  /// what is free.
  bool are_many() const {
    constexpr size_t kFew = 64;
    return may_start_ > std::max(kFew, pool_.queues.size() / 4);
  }

  void enter_projects_later() {
    auto enter_classes = [this](ProjectIndex leaf) {
      for (const QueuedClass& one : classes_in_order(pool_.queue_of(leaf))) {
        if (!is_not_refused(*one.ask) || is_held_back(leaf, -one.negative_priority)) continue;
        order_.add(one);
        one.ask->in_order.push_back(one.waiting);
      }
    };
    pool_.rankings.update(pool_);
    order_.add_ranked(pool_.rankings.waiting(), pool_.rankings.least_charge(),
                      std::move(enter_classes));
    enters_later_ = true;
  }

  /// The next class to serve. A start with a time limit can make the order matter from now on.
  WaitClass* top() {
    if (enters_later_ && (!are_many() || needs_serve_order())) enter_the_rest();
    return order_.top();
  }

  /// Of the projects that were not entered yet.
  void enter_the_rest() {
    enters_later_ = false;
    std::vector<WaitClass*> rest;
    for (auto& [key, ask] : pool_.asks) {
      if (!is_not_refused(ask)) continue;
      std::copy_if(ask.classes.begin(), ask.classes.end(), std::back_inserter(rest),
                   [this](const WaitClass* waiting) { return order_.is_later(waiting->leaf); });
    }
    order_.drop_later();
    for (WaitClass* const waiting : rest) enter(*waiting);
  }

  void enter(WaitClass& waiting) {
    if (waiting.waiters.empty() || is_held_back(waiting.leaf, waiting.key.priority)) return;
    put_in_order(waiting);
  }

  void put_in_order(WaitClass& waiting) {
    order_.add(waiting);
    waiting.ask->in_order.push_back(&waiting);
  }

  /// Whether room is held for a more important class of the project.
  bool is_held_back(ProjectIndex leaf, int priority) const {
    if (held_for_.empty()) return false;
    const auto held_for = held_for_.find(leaf);
    return held_for != held_for_.end() && priority < held_for->second;
  }

  /// The time until which resources that become free do not go to less important gangs of the
  /// project; nothing: they may. The plan in which the forbearance ends may evict gangs for this
  /// one. So it starts no gang that the next plan would evict.
  std::optional<Time> holds_room_until(const WaitClass& waiting) const {
    const GangState& head = waiting.head();
    if (const auto until = forbears_until(cycle_.options, head, cycle_.now)) return until;
    const Time end = head.gang.submitted + cycle_.options.forbearance;
    const bool ends_now = pool_.planned_at && *pool_.planned_at < end && end <= cycle_.now &&
                          cycle_.options.forbearance.count() > 0 &&
                          cycle_.options.policy == Policy::kFair;
    return ends_now && has_lesser_running(pool_, waiting) ? std::optional(cycle_.now)
                                                          : std::nullopt;
  }

  /// While a gang that was just submitted waits for resources, less important gangs of its project
  /// do not get resources that become free.
  void hold_room_for(const WaitClass& waiting) {
    if (!waiting.has_new_head) return;
    const bool waits = !waiting.waiters.empty() && waiting.constraint == Constraint::kRoom;
    if (!waits || waiting.only_grows()) return;
    const std::optional<Time> until = holds_room_until(waiting);
    if (!until) return;
    if (*until > cycle_.now) pool_.look_again_at(*until);
    int& held_for = held_for_.try_emplace(waiting.leaf, waiting.key.priority).first->second;
    held_for = std::max(held_for, waiting.key.priority);
    for (auto& [key, other] : pool_.queue_of(waiting.leaf).classes) {
      if (key.priority >= held_for) break;
      if (other->waiters.empty()) continue;
      pool_.look_again_at(*until);
      other->held_by = ref_to(waiting.head().gang);
      set_verdict(pool_, *other, Constraint::kReserved);
      order_.drop(*other);
    }
  }

  /// The order of refused gangs matters: the first ones get reservations, or block all later ones.
  bool needs_serve_order() const {
    return cycle_.options.policy == Policy::kFifo || reservations_.takes_more();
  }

  /// Searches once for resources that many classes request, before any class is put in order.
  void probe_asks() {
    for (auto& [key, ask] : pool_.asks) {
      if (ask.shortage || ask.classes.size() < kManyClasses) continue;
      const auto waiting = std::find_if(ask.classes.begin(), ask.classes.end(),
                                        [](const WaitClass* one) { return !one->waiters.empty(); });
      if (waiting == ask.classes.end()) continue;
      Reservations::Placed placed = place((*waiting)->head(), **waiting);
      if (!placed.bookings) continue;
      for (const Booking& booking : *placed.bookings) pool_.nodes.unbook(booking);
    }
  }

  /// Whether the head of the class was started.
  bool serve(WaitClass& waiting) {
    GangState& gang = waiting.head();
    if (may_defer_ && is_better_off_elsewhere(gang)) {
      pool_.deferred = true;
      order_.drop(waiting);
      return false;
    }
    const auto refusal =
        pool_.ledger.refuses(waiting.leaf, waiting.charge, waiting.key.preemptible);
    if (refusal) {
      // Kept until the next one: the constraint that it explains may outlast it in this plan.
      waiting.refusal = refusal;
      set_verdict(pool_, waiting,
                  waiting.refusal->what == CapacityRefusal::What::kLimit ? Constraint::kLimit
                                                                         : Constraint::kQuota);
      order_.drop(waiting);
      return false;
    }
    if (const GangState* const reserved = held_at_any_limit(waiting, gang)) {
      if (pass_reservations(waiting)) return true;
      waiting.held_by = ref_to(reserved->gang);  // gangs that tried to pass have changed it
      set_verdict(pool_, waiting, Constraint::kReserved);
      order_.drop(waiting);
      return false;
    }
    if (try_start(waiting, gang)) return true;
    refuse_room(waiting);
    hold_room_for(waiting);
    if (!waiting.only_grows()) {
      reservations_.blocked(request_of(cycle_.options, gang, pool_, waiting.key.ask.counts));
    }
    if (pass_reservations(waiting)) return true;
    order_.drop(waiting);
    return false;
  }

  /// The gang with a reservation to which this gang has to leave the rest of a limit or quota;
  /// nullptr: none.
  const GangState* held_at_any_limit(const WaitClass& waiting, GangState& gang) {
    if (pool_.kept.empty() && !reservations_.any_with_start()) return nullptr;
    const PlacementRequest request =
        request_of(cycle_.options, gang, pool_, waiting.key.ask.counts);
    const GangState* const reserved = held_at_limit(pool_, request);
    return reserved != nullptr ? reserved : held_at_later_limit(pool_, request, cycle_.now);
  }

  bool try_start(WaitClass& waiting, GangState& gang) {
    SharedRequest& ask = *waiting.ask;
    // The reservation that blocked the last gang may not apply to the next one.
    const bool may_differ = ask.only_reserved && (gang.gang.time_limit || !pool_.kept.empty());
    const bool is_known = ask.shortage && !may_differ;
    if (is_known && pool_.kept.empty()) return false;
    Reservations::Placed placed;
    if (!is_known) placed = place(gang, waiting);
    if (!placed.bookings) {
      if (!needs_serve_order() && !ask.only_reserved) drop_all_of(ask);
      return false;
    }
    start(cycle_, gang, pool_, open_tasks(gang, waiting.key.ask.counts), *placed.bookings);
    reservations_.started(*placed.bookings);
    put_in_order(waiting);
    WaitClass* const next = entry_in(gang, pool_).waits_in;
    if (next != nullptr) put_in_order(*next);
    return true;
  }

  /// Records a refusal in the shared request.
  Reservations::Placed place(GangState& gang, WaitClass& waiting) {
    const std::vector<int> counts = waiting.key.ask.counts;
    Reservations::Placed placed =
        reservations_.place(request_of(cycle_.options, gang, pool_, counts), waiting.ask);
    if (placed.bookings) return placed;
    waiting.ask->shortage = placed.shortage;
    waiting.ask->only_reserved = placed.only_reserved;
    waiting.held_by = placed.held_by;
    const bool none_is_open = placed.shortage && placed.shortage->nodes == 0;
    const bool may_fit_now = waiting.ask->reported_never && !never_verdict(pool_, gang);
    if (may_fit_now) waiting.ask->reported_never = false;
    if (std::exchange(waiting.ask->none_is_open, none_is_open) != none_is_open || may_fit_now) {
      explain_again(*waiting.ask);
    }
    return placed;
  }

  void explain_again(SharedRequest& ask) {
    for (WaitClass* const waiting : ask.classes) {
      waiting->changed = true;
      pool_.explain_later(*waiting);
    }
  }

  /// Looks only at the classes of the request for which something changes.
  void drop_all_of(SharedRequest& ask) {
    may_start_ -= std::min(may_start_, ask.classes.size());
    const std::vector<WaitClass*>& with_fresh =
        pool_.unsure.size() < ask.classes.size() ? pool_.unsure : ask.classes;
    for (WaitClass* const waiting : with_fresh) {
      const bool is_fresh = !waiting->waiters.empty() && waiting->constraint == Constraint::kNone;
      if (is_fresh && waiting->ask == &ask) refuse_room(*waiting);
    }
    for (WaitClass* const waiting : ask.in_order) order_.drop(*waiting);
    ask.in_order.clear();
    std::vector<WaitClass*> new_heads;
    std::copy_if(pool_.new_heads.begin(), pool_.new_heads.end(), std::back_inserter(new_heads),
                 [&](const WaitClass* waiting) {
                   return waiting->ask == &ask && !waiting->waiters.empty();
                 });
    std::sort(new_heads.begin(), new_heads.end(), [](const WaitClass* one, const WaitClass* other) {
      return one->number < other->number;
    });
    for (WaitClass* const waiting : new_heads) hold_room_for(*waiting);
  }

  /// Starts the first gang of the class that ends before the reserved starts, when its head may not
  /// start.
  bool pass_reservations(WaitClass& waiting) {
    if (!reservations_.any_with_start()) return false;
    const Time latest = *reservations_.latest_start();
    int left = kMostLookedAtToPass;
    for (GangState* const gang : waiting.waiters) {
      const bool fits_nowhere = waiting.ask->shortage && !waiting.ask->only_reserved;
      if (fits_nowhere || left-- == 0) return false;
      const std::optional<Milliseconds>& limit = gang->gang.time_limit;
      if (!limit || cycle_.now + *limit > latest) continue;
      if (held_at_any_limit(waiting, *gang) != nullptr) continue;
      if (try_start(waiting, *gang)) return true;
    }
    return false;
  }

  void refuse_room(WaitClass& waiting) {
    const SharedRequest& ask = *waiting.ask;
    set_verdict(pool_, waiting,
                ask.only_reserved                 ? Constraint::kReserved
                : !ask.shortage->topology.empty() ? Constraint::kTopology
                                                  : Constraint::kRoom);
  }

  bool is_better_off_elsewhere(const GangState& gang) const {
    for (const PoolEntry& entry : gang.entries) {
      if (entry.pool == &pool_) return false;
      if (entry.waits_in != nullptr && entry.pool->dirty &&
          entry.pool->allocated_in != cycle_.number) {
        return true;
      }
    }
    return false;
  }

  Cycle& cycle_;
  Pool& pool_;
  bool may_defer_;
  Reservations reservations_;
  ServeOrder order_;
  /// By project: gangs below this priority get nothing. For looking up only.
  std::unordered_map<ProjectIndex, int> held_for_;
  size_t may_start_ = 0;  ///< about how many classes may still start
  bool enters_later_ = false;
};

}  // namespace

void allocate(Cycle& cycle, Pool& pool, bool may_defer) {
  pool.deferred = false;
  Allocation(cycle, pool, may_defer).run();
  pool.allocated_in = cycle.number;
}

}  // namespace muster::schedule
