// What the tasks of an attempt share, drawn from its job and its seed: who takes part, where each
// answers, by which keys.
//
// Pure. Of plan.cc, growth.cc and their parts alone.
#pragma once

#include "base/result.h"
#include "launch/gang.h"

namespace muster::launch {

/// The tasks that have a place and have not left. Their addresses and ports are chosen for all
/// tasks that the job has ever had in this attempt, so that who comes and goes changes nobody
/// else's. `job` and `site` outlive the gang. Errors: as plan_gang().
base::Result<Gang> gather_gang(const job::Job& job, const GangSeed& seed, const Site& site);

}  // namespace muster::launch
