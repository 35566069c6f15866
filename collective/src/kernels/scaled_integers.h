// Integers with scales or a divisor. Each step by itself is a function from integers to integers:
// every input is multiplied in double and rounded towards zero, the operation wraps, its result is
// divided towards zero or multiplied and rounded again. So a reduction in several steps, which
// keeps integers between them, gives what one step gives. What no longer fits after a
// multiplication becomes the nearest that does; NaN becomes 0.
//
// Rare, so simple: tile by tile in the first-level cache, in loops that the compiler vectorizes.
#pragma once

#include "kernels/loop.h"

namespace muster::collective::MUSTER_KERNEL_ISA {

template <typename T>
struct ScaledIntegers {
  static constexpr std::size_t kTile = 512;
  static constexpr bool kSigned = std::is_signed_v<T>;
  static constexpr int kBits = static_cast<int>(8 * sizeof(T)) - (kSigned ? 1 : 0);
  static constexpr T kMost = static_cast<T>(~0ULL >> (64 - kBits));
  static constexpr T kLeast = kSigned ? static_cast<T>(~kMost) : T{0};
  // One more than kMost: a double, always.
  static constexpr double kBound = static_cast<double>(1ULL << (kBits - 1)) * 2;

  static T rounded(double value) {
    if (value >= kBound) return kMost;
    if (value <= static_cast<double>(kLeast)) return kLeast;
    return value == value ? static_cast<T>(value) : T{0};
  }

  static void multiply(T* values, std::size_t count, double factor) {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = rounded(static_cast<double>(values[i]) * factor);
    }
  }

  // Quotients of 32 bits are exact in double once they are cut off, and quicker there.
  static void divide(T* values, std::size_t count, int divisor) {
    using Wide = std::conditional_t<sizeof(T) < 8, double,
                                    std::conditional_t<kSigned, std::int64_t, std::uint64_t>>;
    const Wide by = static_cast<Wide>(divisor);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<T>(static_cast<Wide>(values[i]) / by);
    }
  }

  static void run(const Kernel& kernel, const std::byte* const* inputs, int n,
                  std::byte* const* outs, int n_out, std::size_t count, Stores stores);
};

}  // namespace muster::collective::MUSTER_KERNEL_ISA
