// The variables of a task of a gang.
//
// Pure. Of plan.cc and its parts alone.
#pragma once

#include <string>

#include "launch/gang.h"

namespace muster::launch {

/// Of the task at `index` of gang.tasks. Those of an image are below all others but PATH; over them
/// come Muster's own, then the user's, the secrets, and last what shows it its GPUs. Where its
/// program calls a plain ssh, PATH leads to the one that knows the job first. On the machine itself
/// PATH ends with the folder of Muster's programs.
Variables environment_of(const Gang& gang, size_t index);

}  // namespace muster::launch
