// Updates nodes, ledger, wait classes and victim sets when a gang changes.
//
// Change the gang with the functions here, then call refresh() once.
#pragma once

#include "schedule/pool.h"

namespace muster::schedule {

/// Updates everything that depends on the states of the gang's tasks.
void refresh(GangState& gang);

/// Adds an entry of the gang for `pool`, without amounts.
void enter(GangState& gang, Pool& pool);
/// Recomputes the gang's charge after the pool's smallest GPU memory has changed. A gang that holds
/// resources keeps a charge that would rise, until it waits again: a node that joins must not put a
/// project over its quota. The caller calls refresh() if this returns true. REQUIRES: done for all
/// gangs of the pool, which share classes.
bool charge_anew(GangState& gang, Pool& pool);
/// Looks up the gang's project again, which may have been added.
void find_leaf(GangState& gang, PoolEntry& entry);

/// Task `task` of the gang, whose home is `home`, runs on `booking`, which is of a node of `held_in`;
/// books it, unless its node is -1.
void occupy(GangState& gang, Pool& home, int task, Pool& held_in, const Booking& booking);
/// As occupy() in `pool`, if the resources are already booked.
void settle_in(GangState& gang, Pool& pool, int task, const Booking& booking);
/// Frees the resources of the task. Returns the promise that it was leaving for.
MakesRoomFor vacate(GangState& gang, int task);
/// Frees the resources that were promised to the gang.
void drop_promise(GangState& gang);

/// The running task was evicted: its resources become free when it has ended.
void begin_to_leave(GangState& gang, int task);

/// The node of the task was removed: the task still counts, but holds no node.
void lose_node(GangState& gang, int task);

/// What the ledger of its home counts: running tasks, promises, and tasks that leave, but not for
/// another gang.
Amounts counted_amounts(const GangState& gang);

/// Removes the gang from all ledgers and queues. REQUIRES: it holds nothing, and refresh() was
/// called.
void withdraw(GangState& gang);

/// Updates the gang's counted amounts after a committed trial, which has changed the ledger.
void recount_after_trial(GangState& gang);

/// Makes the gangs that this plan started eligible for eviction.
void end_plan(Pool& pool);

/// Deletes wait classes without waiters.
void drop_empty_classes(Pool& pool);

}  // namespace muster::schedule
