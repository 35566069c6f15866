// What stands behind the Scheduler's interface; for the files that implement it.
#pragma once

#include "schedule/cluster.h"

namespace muster::schedule {

struct Scheduler::State : Cluster {};

}  // namespace muster::schedule
