// A folder for what is fetched, in $TMPDIR or /tmp, open to this user alone.
#pragma once

#include "workspace/sources.h"

namespace muster::workspace {

/// Fetched with a new and empty `folder` in its `own`. I/O.
Result<Fetched> own_folder();

}  // namespace muster::workspace
