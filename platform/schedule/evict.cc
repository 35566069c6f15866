#include "schedule/evict.h"

#include <algorithm>
#include <iterator>

#include "schedule/gang_books.h"

namespace muster::schedule {

namespace {

void promise(Cycle& cycle, Pool& pool, GangState& gang, const std::vector<int>& tasks,
             const std::vector<Booking>& bookings) {
  Start coming{.id = gang.gang.id, .tasks = tasks};
  for (size_t i = 0; i < tasks.size(); ++i) {
    gang.tasks[static_cast<size_t>(tasks[i])].promised = bookings[i];
    coming.places.push_back(pool.nodes.place_of(bookings[i]));
  }
  cycle.plan.promises.push_back(std::move(coming));
  gang.home = &pool;
}

void send_away(Cycle& cycle, Pool& pool, const Evicted& evicted, const MakesRoomFor& whom) {
  GangState& gang = *evicted.gang;
  for (const int task : evicted.tasks) {
    TaskState& state = gang.tasks[static_cast<size_t>(task)];
    state.phase = TaskPhase::kLeaving;
    state.leaves_for = whom;
  }
  if (!evicted.moved.empty()) promise(cycle, pool, gang, evicted.moved, evicted.moved_to);
  if (!evicted.moves_whole()) gang.cools_until = cycle.now + cycle.options.cooldown;
  // The trial has booked that already.
  recount_after_trial(gang);
}

}  // namespace

std::vector<Eviction> evictions_of(const Pool& pool, Trial& trial, const Asking& asking,
                                   const Decision& decision, EvictionCause cause, Tense tense) {
  std::vector<Eviction> evictions;
  const Gang& by = asking.gang.gang;
  trial.lift_books();
  for (const Evicted& evicted : decision.evicted) {
    const Gang& victim = evicted.gang->gang;
    const EvictionCause its_cause = evicted.moves_whole() ? EvictionCause::kMoved : cause;
    evictions.push_back({.id = victim.id,
                         .tasks = evicted.tasks,
                         .moved = evicted.moved,
                         .cause = its_cause,
                         .by = by.id,
                         .why = eviction_fact(victim, by, its_cause, pool.ledger, tense)});
  }
  trial.restore_books();
  return evictions;
}

void carry_out(Cycle& cycle, Pool& pool, Trial& trial, const Asking& asking,
               const Decision& decision, EvictionCause cause) {
  std::vector<Eviction> evictions = evictions_of(pool, trial, asking, decision, cause);
  std::move(evictions.begin(), evictions.end(), std::back_inserter(cycle.plan.evictions));
  trial.commit();
  GangState& gang = asking.gang;
  std::erase_if(pool.kept, [&](const Reservation& kept) { return kept.gang == &gang; });
  for (const Entry& entry : gang.entries) {
    if (entry.pool != &pool) drop_reservation(*entry.pool, gang);
  }
  const std::vector<int> tasks = open_tasks(gang, asking.counts);
  promise(cycle, pool, gang, tasks, decision.bookings);
  recount_after_trial(gang);
  ++gang.promise;
  gang.leaving_for_it = 0;
  for (const Evicted& evicted : decision.evicted) {
    gang.leaving_for_it += static_cast<int>(evicted.tasks.size());
    send_away(cycle, pool, evicted, {.gang = gang.number, .promise = gang.promise});
    refresh(*evicted.gang);
  }
  refresh(gang);
}

void evict_rest(Cycle& cycle, GangState& gang) {
  Eviction eviction{.id = gang.gang.id, .cause = EvictionCause::kStale};
  eviction.why = job::Stale{.running = running_tasks(gang),
                            .minimum = minimum_tasks(gang.gang),
                            .grace = *cycle.options.stale_grace};
  for (size_t task = 0; task < gang.tasks.size(); ++task) {
    TaskState& state = gang.tasks[task];
    if (state.phase != TaskPhase::kRunning) continue;
    state.phase = TaskPhase::kLeaving;
    if (state.held.node >= 0) gang.home->nodes.begin_release(state.held);
    eviction.tasks.push_back(static_cast<int>(task));
  }
  cycle.plan.evictions.push_back(std::move(eviction));
  refresh(gang);
}

}  // namespace muster::schedule
