// The moment until which an operation may wait. A deadline, unlike a duration, is handed down
// through any number of steps without each of them starting the wait anew.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

namespace muster::collective {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// What is left, as poll() wants it: in milliseconds, rounded up so that a wait never ends early
/// and spins, 0 once the deadline has passed.
inline int milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000));
}

/// As in messages: "60 s", "0.25 s".
inline std::string in_seconds(std::chrono::milliseconds duration) {
  std::string text = std::to_string(duration.count() / 1000);
  std::string fraction = std::to_string(1000 + duration.count() % 1000).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return text + (fraction.empty() ? "" : "." + fraction) + " s";
}

}  // namespace muster::collective
