// Gangs that have run below their minimum for longer than the grace hold room for nothing.
#include "schedule/evict.h"

namespace muster::schedule {

void evict_stale(Cycle& cycle, Pool& pool) {
  if (!cycle.options.stale_grace) return;
  const std::vector<GangState*> stale(pool.stale.begin(), pool.stale.end());
  for (GangState* const gang : stale) {
    // Since when is known of those that lost a task here; others get the whole grace.
    if (!gang->stale_since) gang->stale_since = cycle.now;
    const Time until = *gang->stale_since + *cycle.options.stale_grace;
    if (cycle.now < until) {
      pool.look_again_at(until);
    } else {
      evict_rest(cycle, *gang);
    }
  }
}

}  // namespace muster::schedule
