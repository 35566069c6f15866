// Telling those that wait why. What a class of equal gangs is told is worked out once; and only a
// constraint that changes is news, for numbers change all the time.
#include "schedule/cycle.h"
#include "schedule/explain.h"

namespace muster::schedule {

namespace {

// Of a class whose constraint changes, so many of the first are told anew; the others, when they
// come to the front. explain() knows better for each of them at any time.
constexpr int kMostToldAnew = 8;

using SharedVerdict = std::shared_ptr<const Verdict>;

void tell(Cycle& cycle, GangState& gang, const SharedVerdict& verdict) {
  if (gang.told == verdict->constraint) return;
  gang.told = verdict->constraint;
  cycle.plan.waits.push_back({gang.gang.id, verdict});
}

void tell_alone(Cycle& cycle, GangState& gang, Verdict verdict) {
  tell(cycle, gang, std::make_shared<const Verdict>(std::move(verdict)));
}

void tell_class(Cycle& cycle, const Pool& pool, WaitClass& waiting) {
  if (waiting.waiters.empty() || waiting.constraint == Constraint::kNone) return;
  if (waiting.untold.empty() && !waiting.changed) return;
  const auto verdict = std::make_shared<const Verdict>(verdict_of(pool, waiting, waiting.head()));
  for (GangState* const gang : waiting.untold) tell(cycle, *gang, verdict);
  waiting.untold.clear();
  if (!waiting.changed) return;
  int left = kMostToldAnew;
  for (GangState* const gang : waiting.waiters) {
    if (left-- == 0) break;
    tell(cycle, *gang, verdict);
  }
  waiting.changed = false;
}

}  // namespace

void tell_waits(Cycle& cycle, Pool& pool) {
  for (GangState* const gang : pool.promised) tell_alone(cycle, *gang, promise_verdict(*gang));
  for (GangState* const gang : pool.homeless)
    tell_alone(cycle, *gang, project_verdict(pool, *gang));
  for (ProjectQueue& queue : pool.queues) {
    for (auto& [key, waiting] : queue.classes) tell_class(cycle, pool, *waiting);
  }
}

}  // namespace muster::schedule
