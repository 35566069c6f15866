// The signals that a server understands: SIGTERM and SIGINT end it in good order, SIGHUP has it
// read its configuration again.
#pragma once

#include "base/unique_fd.h"

namespace muster::service {

/// Blocks them for this process, and SIGPIPE for good. To be called before threads start.
base::UniqueFd watch_signals();

enum class Wish { kNone, kEnd, kReload };
/// The next one that came. SIGHUP means kEnd where the terminal that this server was started in is
/// gone, for that is what the kernel tells by it.
Wish next_wish(int signals);

}  // namespace muster::service
