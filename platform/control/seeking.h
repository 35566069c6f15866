// How a job that waits stands with the cluster that its engine asks for room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace muster::control {

/// Never stored: a restarted server asks again.
struct Seeking {
  uint64_t turn = 0;       ///< counts how often it began to wait, or ceased to
  bool asked = false;      ///< for its next attempt, and not answered yet
  bool was_taken = false;  ///< the room of its last attempt: the cluster may give it again
  std::string constraint;  ///< the cluster's word for why it waits
  std::optional<base::Time> rests_until;  ///< before that, nothing is asked for
};

}  // namespace muster::control
