// Which ports the program of a task binds, as far as Muster chose them.
//
// Pure. Of plan.cc and its parts alone.
#pragma once

#include <vector>

#include "launch/gang.h"

namespace muster::launch {

/// Of the task at `index` of gang.tasks. A server of TensorFlow and a store of torch bind every
/// address, whichever they are told of; rank 0 of an MPI program binds the one where the others
/// look for it.
std::vector<ServedPort> served_ports(const Gang& gang, size_t index);

/// The task whose address MUSTER_RENDEZVOUS names: where mpirun puts rank 0, the first worker of
/// the hostfile; of other kinds the leader. An index of gang.tasks.
size_t rendezvous_task(const Gang& gang);

}  // namespace muster::launch
