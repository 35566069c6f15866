// What is now in tests of what is shown.
#pragma once

#include "base/clock.h"

namespace muster::cli {

inline const base::Time kNow = base::FakeClock().now();

}  // namespace muster::cli
