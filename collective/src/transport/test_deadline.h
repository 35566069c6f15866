// The deadline that tests give to calls which return at once when all is well.
#pragma once

#include <chrono>

#include "transport/socket.h"

namespace muster::collective::testing {

/// Far longer than any test waits, shorter than the test runner's own limit.
inline Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

}  // namespace muster::collective::testing
