// Shared by the tests of notifications: short names for times and lists.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::notify {

using Texts = std::vector<std::string>;

/// So many seconds after 1970-01-01.
inline base::Time at_second(int64_t second) {
  return base::Time(std::chrono::seconds(second));
}

}  // namespace muster::notify
