// The common part of the programs that check a plug-in under a real launcher: runs every collective
// with every type and operation, and compares the results with values computed here.
#pragma once

#include "muster/collective/communicator.h"

namespace muster::collective {

/// Whether all results are right on this rank. Prints wrong results to standard error. Called by
/// all ranks.
bool check_collectives(Communicator& world);

}  // namespace muster::collective
