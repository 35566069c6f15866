// How long poll(2) may wait: a number of milliseconds, or -1 for as long as nothing comes.
//
// Pure.
#pragma once

#include <algorithm>
#include <chrono>

namespace muster::engine {

/// At most an hour; who waits longer looks again.
inline int milliseconds_of(std::chrono::nanoseconds left) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left);
  return static_cast<int>(std::clamp<int64_t>(whole.count(), 0, 3'600'000));
}

inline int sooner(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace muster::engine
