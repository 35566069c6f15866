// Sums of amounts that cannot overflow, so that what was added can be taken away again exactly,
// however absurd it was. Read where they are compared with bounds, which are plain amounts.
#pragma once

#include "schedule/amounts.h"

namespace muster::schedule {

__extension__ using Wide = __int128;

class WideAmounts {
 public:
  WideAmounts() = default;
  explicit WideAmounts(const Amounts& amounts) { *this += amounts; }

  Wide operator[](Resource resource) const { return sums_[static_cast<size_t>(resource)]; }

  WideAmounts& operator+=(const Amounts& amounts) {
    for (const Resource resource : kResources) {
      sums_[static_cast<size_t>(resource)] += amounts[resource];
    }
    return *this;
  }
  WideAmounts& operator-=(const Amounts& amounts) {
    for (const Resource resource : kResources) {
      sums_[static_cast<size_t>(resource)] -= amounts[resource];
    }
    return *this;
  }
  WideAmounts& operator+=(const WideAmounts& other) {
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
    return *this;
  }
  friend WideAmounts operator+(WideAmounts sum, const Amounts& amounts) { return sum += amounts; }

  /// As plain amounts: what is past kUnlimited reads as kUnlimited.
  int64_t clamped(Resource resource) const {
    return static_cast<int64_t>(std::clamp<Wide>((*this)[resource], -kUnlimited, kUnlimited));
  }
  Amounts clamped() const {
    return {clamped(Resource::kGpu), clamped(Resource::kCpu), clamped(Resource::kMemory)};
  }

 private:
  std::array<Wide, kResources.size()> sums_{};
};

}  // namespace muster::schedule
