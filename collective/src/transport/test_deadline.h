// The deadline of calls in tests, which return at once unless the test fails.
#pragma once

#include <chrono>

#include "transport/socket.h"

namespace muster::collective::testing {

/// Far longer than any test waits, and shorter than the test runner's own limit.
inline Deadline soon() {
  return Clock::now() + std::chrono::seconds(20);
}

}  // namespace muster::collective::testing
