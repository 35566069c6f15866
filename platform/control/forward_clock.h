// A clock that never goes back. What waits for a time to come must not wait for as long as the
// machine's clock was set back.
//
// Not thread-safe.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace muster::control {

class ForwardClock : public base::Clock {
 public:
  /// `clock` must outlive it.
  explicit ForwardClock(const base::Clock& clock) : clock_(clock), last_seen_(clock.now()) {}

  /// Stands still while the clock beneath goes back, and goes on with it from there.
  base::Time now() const override {
    const base::Time seen = clock_.now();
    if (seen < last_seen_) lead_ += last_seen_ - seen;
    last_seen_ = seen;
    return seen + lead_;
  }

  /// What was noted as `time` by the clock beneath; never later than now.
  base::Time of(base::Time time) const {
    const base::Time present = now();
    return std::min(time + lead_, present);
  }

 private:
  const base::Clock& clock_;
  mutable base::Time last_seen_;
  mutable std::chrono::nanoseconds lead_{0};
};

}  // namespace muster::control
