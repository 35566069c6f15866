// How an elastic job handles a change in the number of its workers.
//
// Pure.
#pragma once

#include "job/job.h"

namespace muster::launch {

using job::is_elastic;

/// Whether an elastic job continues while its workers change, instead of being restarted with
/// fewer: as set in the spec (Scheduling::resize), otherwise depending on its command. torchrun,
/// run in every task, gathers the present tasks; horovodrun with a discovery script asks it for
/// hosts. A plain mpirun and TensorFlow's clusters keep the number that they started with. The
/// command of an image or of the user's script is unknown, and treated like these.
bool resizes_live(const job::JobSpec& spec);

}  // namespace muster::launch
