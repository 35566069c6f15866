// Who holds what a waiting gang needs.
#pragma once

#include <vector>

#include "schedule/reservation.h"

namespace muster::schedule {

/// Two facts, or none: the projects, and the gangs, that hold most of the resource that `asking`
/// wants, at most five of each. `within`: only what counts for this project, its own gangs and
/// those below it; kNoProject: all of the pool.
std::vector<job::HeldByOthers> holders_of(const Pool& pool, const Asking& asking,
                                          ProjectIndex within);

}  // namespace muster::schedule
