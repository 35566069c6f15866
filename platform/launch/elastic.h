// How a job that may run with fewer workers than it asks for takes a change of their number.
//
// Pure.
#pragma once

#include "job/job.h"

namespace muster::launch {

using job::is_elastic;

/// Whether an elastic job goes on while its workers change, rather than being started again with
/// fewer: as the spec says (Scheduling::resize), else by what its command is made for. torchrun
/// gathers whoever is there, where every task runs it; horovodrun asks a script for its hosts,
/// where it is given one. A plain mpirun, and TensorFlow's clusters, have the number that they
/// began with. What an image or a script of the user's runs nobody knows, so it is taken for such.
bool resizes_live(const job::JobSpec& spec);

}  // namespace muster::launch
