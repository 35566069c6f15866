// When a delivery that failed is tried again, and when no more.
//
// Pure; thread-safe.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"

namespace muster::notify {

struct RetrySchedule {
  std::chrono::milliseconds first{10'000};
  std::chrono::milliseconds longest{3'600'000};
  std::chrono::milliseconds give_up_after{24 * 3'600'000};  ///< since what is told happened
};

/// The pause doubles with each attempt up to the longest, and is shortened by up to a half, so that
/// what failed together does not come back together. `attempts`: those that failed; `dice`: from 0
/// to 1. Nothing: it is given up.
std::optional<base::Time> next_attempt(const RetrySchedule& schedule, base::Time created,
                                       base::Time now, int attempts, double dice);

/// What an answer means for a delivery.
enum class Verdict {
  kArrived,
  kAgain,  ///< may be mended: no answer, 5xx, 408, 425, 429
  kNever,  ///< sent again, it would be refused again
  kGone,   ///< 410: the receiver wants no more of it
};
Verdict verdict_on(int status);

}  // namespace muster::notify
