// What two vectors become. Integers are unsigned in sums and products, whose overflow is defined.
//
// The least and greatest of floats follow IEEE 754-2019's minimum and maximum: a NaN on either side
// gives a NaN, and -0 is less than +0. So they depend on no order.
#pragma once

#include "kernels/vectors.h"

namespace muster::collective::MUSTER_KERNEL_ISA {

struct Sum {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a + b;
  }
};

struct Product {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a * b;
  }
};

// x86's minimum of floats is `a < b ? a : b`: b where a or b is NaN, and where they are equal. Its
// results for both orders of the operands differ only for zeros and NaNs; or-ing their bits gives
// -0, and a NaN.
struct Min {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = Vec<std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;
      const V b_last = a < b ? a : b;
      const V a_last = b < a ? b : a;
      return reinterpret_cast<V>(reinterpret_cast<Bits>(b_last) | reinterpret_cast<Bits>(a_last));
    } else {
      return a < b ? a : b;
    }
  }
};

// As Min. For zeros `differing` is a sign, and -0 - -0 is +0; a NaN stays one in the subtraction;
// for all else 0 is subtracted.
struct Max {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = Vec<std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;
      const auto b_last = reinterpret_cast<Bits>(a > b ? a : b);
      const auto a_last = reinterpret_cast<Bits>(b > a ? b : a);
      const Bits differing = b_last ^ a_last;
      return reinterpret_cast<V>(b_last | differing) - reinterpret_cast<V>(differing);
    } else {
      return a > b ? a : b;
    }
  }
};

}  // namespace muster::collective::MUSTER_KERNEL_ISA
