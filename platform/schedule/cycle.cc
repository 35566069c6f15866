#include "schedule/cycle.h"

#include <algorithm>

#include "schedule/gang_books.h"
#include "schedule/reservation.h"

namespace muster::schedule {

void start(Cycle& cycle, GangState& gang, Pool& pool, const std::vector<int>& tasks,
           const std::vector<Booking>& bookings) {
  if (gang.started_in != cycle.number) {
    gang.started_in = cycle.number;
    gang.start_in_plan = cycle.plan.starts.size();
    cycle.plan.starts.push_back({.id = gang.gang.id});
  }
  Start& start = cycle.plan.starts[gang.start_in_plan];
  for (size_t i = 0; i < tasks.size(); ++i) {
    settle_in(gang, pool, tasks[i], bookings[i]);
    start.tasks.push_back(tasks[i]);
    start.places.push_back(pool.nodes.place_of(bookings[i]));
  }
  if (!gang.started) gang.started = cycle.now;
  gang.told.reset();
  for (const Entry& entry : gang.entries) drop_reservation(*entry.pool, gang);
  refresh(gang);
}

bool is_protected(const Cycle& cycle, Pool& pool, const GangState& gang,
                  Milliseconds Project::* minimum) {
  const auto project = cycle.projects.find(gang.gang.project);
  if (project == cycle.projects.end() || !gang.started) return false;
  const Time until = *gang.started + project->second.*minimum;
  // Started in the future, as a clock that was set back has it: nobody knows how long it has run.
  if (until <= cycle.now || *gang.started > cycle.now) return false;
  pool.look_again_at(until);
  return true;
}

void set_verdict(WaitClass& waiting, Constraint constraint) {
  if (waiting.constraint == constraint) return;
  waiting.constraint = constraint;
  waiting.changed = true;
}

std::optional<Time> forbears_until(const Options& options, const GangState& gang, Time now) {
  const Time until = gang.gang.submitted + options.forbearance;
  // Submitted in the future, as a clock that was set back has it: nobody knows how long ago.
  return gang.gang.submitted <= now && now < until ? std::optional<Time>(until) : std::nullopt;
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
      // What ends a release gives back what a claim took: now, and not later.
      while (claimed > 0) pool.nodes.end_release(bookings[--claimed]);
      continue;
    }
    for (const int task : tasks) gang->tasks[static_cast<size_t>(task)].promised.reset();
    start(cycle, *gang, pool, tasks, bookings);
  }
}

}  // namespace muster::schedule
