// What the programs that check a plug-in under a real launcher have in common: every collective, by
// every type and operation, against values computed here.
#pragma once

#include "muster/collective/communicator.h"

namespace muster::collective {

/// Whether all is right on this rank; else says on standard error what is not. Called by all ranks.
bool check_collectives(Communicator& world);

}  // namespace muster::collective
