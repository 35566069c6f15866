#include "ring/stall_watch.h"

#include <algorithm>

namespace muster::collective {

using std::chrono::milliseconds;

void StallWatch::progress(Deadline now) {
  since_ = now;
  probing_ = false;
  rounds_ = 0;
}

void StallWatch::answered(Side side) {
  (side == Side::kLeft ? left_owes_ : right_owes_) = false;
}

Deadline StallWatch::next() const {
  return since_ + timeout_ + (probing_ ? grace() : milliseconds{0});
}

milliseconds StallWatch::grace() const {
  return std::clamp(timeout_ / 4, milliseconds{500}, milliseconds{5000});
}

StallWatch::Verdict StallWatch::check(Deadline now, bool waits_for_left, bool waits_for_right) {
  if (now < next()) return Verdict::kWait;
  if (!probing_) {
    probing_ = true;
    left_owes_ = waits_for_left;
    right_owes_ = waits_for_right;
    return Verdict::kProbe;
  }
  if (left_owes_) return Verdict::kLeftSilent;
  if (right_owes_) return Verdict::kRightSilent;
  since_ = now;
  probing_ = false;
  return ++rounds_ < kRounds ? Verdict::kWait : Verdict::kStuck;
}

}  // namespace muster::collective
