// A buffer cut in one slice for every rank, of whole elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/plan_reduce.h"

namespace muster::collective::tcp {

class Slices {
 public:
  Slices(Extent extent, int parts)
      : extent_(extent),
        parts_(static_cast<std::uint64_t>(parts)),
        unit_(extent.count >= parts_ * kWorthAligning ? kUnit : 1),
        units_(extent.count / unit_) {}

  /// `index` is taken modulo the number of parts and may be as low as -parts.
  Range operator()(Space space, int index) const {
    const std::uint64_t i = static_cast<std::uint64_t>(index + static_cast<int>(parts_)) % parts_;
    const std::uint64_t begin = start_of(i);
    return {space, begin * extent_.element, (start_of(i + 1) - begin) * extent_.element};
  }

 private:
  // Large slices begin at whole cache lines of an aligned buffer, whatever the type.
  static constexpr std::uint64_t kUnit = 64;
  static constexpr std::uint64_t kWorthAligning = 4096;

  std::uint64_t start_of(std::uint64_t i) const {
    if (i == parts_) return extent_.count;
    return (units_ / parts_ * i + std::min(i, units_ % parts_)) * unit_;
  }

  Extent extent_;
  std::uint64_t parts_;
  std::uint64_t unit_;
  std::uint64_t units_;
};

}  // namespace muster::collective::tcp
