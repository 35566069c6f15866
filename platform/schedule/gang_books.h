// Keeps the books in step with a gang: what it holds in nodes and ledger, what it asks for, where
// it waits, and as whose victim it may be evicted.
//
// Change the gang by the functions here, then call refresh() once.
#pragma once

#include "schedule/pool.h"

namespace muster::schedule {

/// Takes over everything that follows from what the gang's tasks do.
void refresh(GangState& gang);

/// A place in the books of `pool`: as nothing yet.
void enter(GangState& gang, Pool& pool);
/// The project may have come since.
void find_leaf(GangState& gang, Entry& entry);

/// Task `task` runs on `booking`, whose room is taken by this, unless its node is -1.
void occupy(GangState& gang, Pool& pool, int task, const Booking& booking);
/// As occupy(), of room that is booked already.
void settle_in(GangState& gang, Pool& pool, int task, const Booking& booking);
/// Whatever the task holds is free. Returns whom it was leaving for.
MakesRoomFor vacate(GangState& gang, int task);
/// What was promised to it is free.
void drop_promise(GangState& gang);

/// The node is gone: the task goes on holding, but no room.
void lose_node(GangState& gang, int task);

/// What the books of its home should hold of it: what runs and stays, and what is promised.
Amounts counted_amounts(const GangState& gang);

/// Out of all books and queues. REQUIRES: it holds nothing, and refresh() has seen that.
void withdraw(GangState& gang);

/// The books hold what a committed trial booked; the gang takes it over.
void recount_after_trial(GangState& gang);

/// What started in the plan that was made may be evicted from now on.
void end_plan(Pool& pool);

/// Throws away the classes that nobody waits in.
void drop_empty_classes(Pool& pool);

}  // namespace muster::schedule
