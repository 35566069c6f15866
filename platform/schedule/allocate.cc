// Free room to whoever is next. Nobody is held back who fits and may have it: the order alone makes
// it fair.
#include <algorithm>

#include "schedule/gang_books.h"
#include "schedule/reservation.h"

namespace muster::schedule {

namespace {

// How many of a class that is blocked by reservations are looked at for one that ends in time.
constexpr int kMostLookedAtToPass = 64;

class Allocation {
 public:
  Allocation(Cycle& cycle, Pool& pool, bool may_defer)
      : cycle_(cycle),
        pool_(pool),
        may_defer_(may_defer),
        reservations_(cycle, pool),
        order_(pool, cycle.options.policy) {}

  void run() {
    for (ProjectQueue& queue : pool_.queues) queue.held_for.reset();
    if (!needs_the_order()) probe_asks();
    for (ProjectQueue& queue : pool_.queues) enter(queue);
    const bool strict = cycle_.options.policy == Policy::kFifo;
    while (WaitClass* const waiting = order_.top()) {
      if (!serve(*waiting) && strict) return;
    }
  }

 private:
  /// From the most important down to the first that room is held for.
  void enter(ProjectQueue& queue) {
    for (auto at = queue.classes.rbegin(); at != queue.classes.rend(); ++at) {
      WaitClass& waiting = *at->second;
      if (queue.held_for && waiting.key.priority < *queue.held_for) return;
      if (!is_known_to_fail(waiting)) {
        order_.add(waiting);
      } else {
        hold_room_for(waiting);
      }
    }
  }

  /// While a gang that has just come waits for room, less important ones of its project do not take
  /// what becomes free.
  void hold_room_for(const WaitClass& waiting) {
    const bool waits = !waiting.waiters.empty() && waiting.constraint == Constraint::kRoom;
    if (!waits || waiting.only_grows()) return;
    const auto until = forbears_until(cycle_.options, waiting.head(), cycle_.now);
    if (!until) return;
    pool_.look_again_at(*until);
    ProjectQueue& queue = pool_.queue_of(waiting.leaf);
    queue.held_for = std::max(queue.held_for.value_or(waiting.key.priority), waiting.key.priority);
    for (auto& [key, other] : queue.classes) {
      if (key.priority >= *queue.held_for) break;
      if (other->waiters.empty()) continue;
      other->held_by = ref_to(waiting.head().gang);
      set_verdict(*other, Constraint::kReserved);
      order_.drop(*other);
    }
  }

  /// Who is refused room counts: the first ones get reservations, or stop all others.
  bool needs_the_order() const {
    return cycle_.options.policy == Policy::kFifo || reservations_.takes_more();
  }

  /// Room that many classes ask for is looked for once, before any of them is put in order.
  void probe_asks() {
    constexpr size_t kManyClasses = 4;
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

  bool is_known_to_fail(WaitClass& waiting) {
    if (waiting.waiters.empty()) return true;
    if (!waiting.ask->shortage || waiting.ask->only_reserved || needs_the_order()) return false;
    if (waiting.constraint == Constraint::kNone) refuse_room(waiting);
    return waiting.constraint == Constraint::kRoom || waiting.constraint == Constraint::kTopology;
  }

  /// Whether the head of the class was started.
  bool serve(WaitClass& waiting) {
    GangState& gang = waiting.head();
    if (may_defer_ && is_better_off_elsewhere(gang)) {
      pool_.deferred = true;
      order_.drop(waiting);
      return false;
    }
    waiting.refusal = pool_.ledger.refuses(waiting.leaf, waiting.charge, waiting.key.preemptible);
    if (waiting.refusal) {
      set_verdict(waiting, waiting.refusal->what == CapacityRefusal::What::kLimit
                               ? Constraint::kLimit
                               : Constraint::kQuota);
      order_.drop(waiting);
      return false;
    }
    if (try_start(waiting, gang)) return true;
    refuse_room(waiting);
    hold_room_for(waiting);
    if (!waiting.only_grows()) {
      reservations_.blocked(asking_of(cycle_.options, gang, pool_, waiting.key.ask.counts));
    }
    if (pass_reservations(waiting)) return true;
    order_.drop(waiting);
    return false;
  }

  bool try_start(WaitClass& waiting, GangState& gang) {
    Ask& ask = *waiting.ask;
    // Not every gang has to honour what stood in the way of the one before.
    const bool may_differ = ask.only_reserved && (gang.gang.time_limit || !pool_.kept.empty());
    if (ask.shortage && !may_differ) return false;
    const Reservations::Placed placed = place(gang, waiting);
    if (!placed.bookings) {
      if (!needs_the_order() && !ask.only_reserved) drop_all_of(ask);
      return false;
    }
    start(cycle_, gang, pool_, open_tasks(gang, waiting.key.ask.counts), *placed.bookings);
    order_.add(waiting);
    WaitClass* const next = entry_in(gang, pool_).waits_in;
    if (next != nullptr) order_.add(*next);
    return true;
  }

  /// What it is refused, its ask remembers.
  Reservations::Placed place(GangState& gang, WaitClass& waiting) {
    const std::vector<int> counts = waiting.key.ask.counts;
    Reservations::Placed placed =
        reservations_.place(asking_of(cycle_.options, gang, pool_, counts));
    if (placed.bookings) return placed;
    waiting.ask->shortage = placed.shortage;
    waiting.ask->only_reserved = placed.only_reserved;
    waiting.held_by = placed.held_by;
    return placed;
  }

  void drop_all_of(const Ask& ask) {
    for (WaitClass* const waiting : ask.classes) {
      if (waiting->waiters.empty()) continue;
      if (waiting->constraint == Constraint::kNone) refuse_room(*waiting);
      order_.drop(*waiting);
      hold_room_for(*waiting);
    }
  }

  /// Behind a head that has to honour a reservation, one that ends before it starts.
  bool pass_reservations(WaitClass& waiting) {
    if (!waiting.ask->only_reserved || !reservations_.any_with_start()) return false;
    const Time latest = *reservations_.latest_start();
    int left = kMostLookedAtToPass;
    for (GangState* const gang : waiting.waiters) {
      if (left-- == 0) return false;
      const std::optional<Milliseconds>& limit = gang->gang.time_limit;
      if (!limit || cycle_.now + *limit > latest) continue;
      if (try_start(waiting, *gang)) return true;
    }
    return false;
  }

  void refuse_room(WaitClass& waiting) {
    const Ask& ask = *waiting.ask;
    set_verdict(waiting, ask.only_reserved                 ? Constraint::kReserved
                         : !ask.shortage->topology.empty() ? Constraint::kTopology
                                                           : Constraint::kRoom);
  }

  bool is_better_off_elsewhere(const GangState& gang) const {
    for (const Entry& entry : gang.entries) {
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
};

}  // namespace

void allocate(Cycle& cycle, Pool& pool, bool may_defer) {
  pool.deferred = false;
  Allocation(cycle, pool, may_defer).run();
  pool.allocated_in = cycle.number;
}

}  // namespace muster::schedule
