// The state of an experiment, as Gradient calls it:
//
//   created           it was made, and waits for `gradient experiments start`
//   pending           it waits for room
//   provisioning      its tasks are being started
//   network setup     some run; the others, or the leader, are reached next
//   running
//   network teardown  it ends: it was stopped, or its leader has ended, and the rest is being ended
//   stopped           it ended well, or was stopped while it ran
//   failed            it ran, and failed
//   canceled          it was stopped before it ran
//   error             it could not be started
//
// Pure.
#pragma once

#include <string_view>

#include "job/job.h"

namespace muster::dialects::gradient {

std::string_view state_of(const job::Job& job);

/// Whether it ran, be it only for a moment.
bool has_started(const job::Job& job);

}  // namespace muster::dialects::gradient
