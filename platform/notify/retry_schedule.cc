#include "notify/retry_schedule.h"

#include <algorithm>

namespace muster::notify {

std::optional<base::Time> next_attempt(const RetrySchedule& schedule, base::Time created,
                                       base::Time now, int attempts, double dice) {
  constexpr int kMostDoublings = 20;
  const base::Time end = created + schedule.give_up_after;
  if (now >= end) return std::nullopt;
  const double doubled = static_cast<double>(schedule.first.count()) *
                         static_cast<double>(1 << std::clamp(attempts - 1, 0, kMostDoublings));
  const double pause =
      std::min(doubled, static_cast<double>(std::max(schedule.first, schedule.longest).count())) *
      (1 - dice / 2);
  const base::Time next = now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::duration<double, std::milli>(pause));
  // The last attempt is made when the time is up, not an hour before.
  return std::min(next, end);
}

Verdict verdict_on(int status) {
  if (status >= 200 && status < 300) return Verdict::kArrived;
  if (status == 410) return Verdict::kGone;
  const bool may_pass = status == 408 || status == 425 || status == 429;
  if (status >= 400 && status < 500 && !may_pass) return Verdict::kNever;
  // A redirect is not followed, and who has set it up wrongly may mend it.
  return Verdict::kAgain;
}

}  // namespace muster::notify
