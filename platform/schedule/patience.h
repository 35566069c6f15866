// Reservations for gangs that have waited too long while the ends of running gangs are unknown.
// Such a gang keeps the nodes on which it would wait shortest, until it starts (Pool::kept).
#pragma once

#include "schedule/cycle.h"

namespace muster::schedule {

/// Makes reservations for gangs past their patience, after review_reservations().
void lose_patience(Cycle& cycle, Pool& pool);

}  // namespace muster::schedule
