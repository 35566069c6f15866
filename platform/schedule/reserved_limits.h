// A reservation also covers what its gang will take of its project's limit and quota.
#pragma once

#include <vector>

#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

/// Books in the ledger what the gang with the reservation takes when it starts.
void count_in_ledger(Trial& trial, const Pool& pool, const Reservation& reservation);

/// Whether the gang, if it starts now, ends before the reservation, which has a start, begins.
bool ends_before(Time now, const PlacementRequest& request, const Reservation& timed);

/// The reservations of gangs past their patience that the gang must not break by the use of a limit
/// or quota. A gang that has a reservation itself must respect the older ones.
std::vector<const Reservation*> respected_limits(const Pool& pool, const PlacementRequest& request);
/// The first gang that could not use its reservation if the gang of the request started now, because a
/// limit or quota does not suffice for both, or for both and for the earlier reservations; nullptr:
/// none. The last check skips a reservation for which the earlier ones leave too little. REQUIRES: the
/// request is not booked in the ledger. Undoes its changes of `pool`.
const GangState* first_held(Pool& pool, const std::vector<const Reservation*>& reservations,
                            const PlacementRequest& request);
/// As first_held(), for all reservations that the gang must respect.
const GangState* held_at_limit(Pool& pool, const PlacementRequest& request);
/// As held_at_limit(), for reservations with a start: the gang that a limit or quota would keep from
/// starting then, if this gang started now; nullptr: none. Undoes its changes of `pool`.
const GangState* held_at_later_limit(Pool& pool, const PlacementRequest& request, Time now);

}  // namespace muster::schedule
