// Finding whom to evict for a gang, each action by its own rule, and carrying it out.
#pragma once

#include "schedule/make_room.h"
#include "schedule/reason.h"

namespace muster::schedule {

/// Whom to evict for the gang, and where it goes then; the trial stands so. Nothing where this
/// action cannot or may not help it.
std::optional<Decision> find_to_move(const Cycle& cycle, Pool& pool, Trial& trial,
                                     const Asking& asking);
std::optional<Decision> find_to_reclaim(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking);
std::optional<Decision> find_to_preempt(const Cycle& cycle, Pool& pool, Trial& trial,
                                        const Asking& asking);

/// As they are announced, with the numbers as they were before anything was decided.
std::vector<Eviction> evictions_of(const Pool& pool, Trial& trial, const Asking& asking,
                                   const Decision& decision, EvictionCause cause,
                                   Tense tense = Tense::kPast);

/// The trial stands as decided, and is committed: the evicted tasks are leaving, and the gang has
/// the promise of its room; so have those that move.
void carry_out(Cycle& cycle, Pool& pool, Trial& trial, const Asking& asking,
               const Decision& decision, EvictionCause cause);

/// All that runs of a stale gang goes, for nobody in particular.
void evict_rest(Cycle& cycle, GangState& gang);

}  // namespace muster::schedule
