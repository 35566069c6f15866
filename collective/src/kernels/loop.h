// The operations on two vectors, and the loop of every kernel. Integers are unsigned in sums and
// products, whose overflow is defined.
//
// The minimum and maximum of floats are those of IEEE 754-2019: if either side is a NaN, the result
// is a NaN, and -0 is less than +0. So the result does not depend on the order.
//
// Included by one source file of each instruction set, as formats.h is.
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel.h"

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

// x86's minimum of floats is `a < b ? a : b`, which is b if a or b is a NaN, and if they are equal.
// Its results for both orders of the operands differ only for zeros and NaNs. Combining their bits
// with "or" gives -0 for zeros, and a NaN for NaNs.
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

// As Min. For zeros `differing` is the sign bit, and -0 - -0 is +0. A NaN stays a NaN in the
// subtraction. For all other values 0 is subtracted.
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

// Bitwise operations, of integers and of bools, whose bytes are 0 or 1.

struct And {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a & b;
  }
};

struct Or {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a | b;
  }
};

struct Xor {
  template <typename T, typename V>
  [[gnu::always_inline]] static V of(V a, V b) {
    return a ^ b;
  }
};

// The loop of every kernel. Vectors go through it in groups that fill whole cache lines of the
// output: all inputs of a group are read and combined in registers before its first byte is
// written, so an output may be one of the inputs.
//
// Elements before the output's first whole line, and elements after the last group, are processed
// vector by vector; a rest that is smaller than a vector is copied to a vector on the stack.

/// The scaling in a loop besides the combination of its inputs: none, a division of the result, or
/// any factors of a spec. Plain averages have a separate loop, since with factors 16-bit floats are
/// rounded after every step.
enum class Scales { kNone, kDivisor, kAny };

/// The scaling of the inputs before the operation and of its result, in the accumulator's type.
template <typename T>
struct Scaling {
  T before = 1;
  T after = 1;
  T divisor = 1;
  bool divides = false;         // by `divisor`, instead of multiplying by `after`
  bool rounds_between = false;  // rounds the result of the operation before it is multiplied
};

/// A plain average divides, so that the average of equal values is that value. For a power of two,
/// multiplication gives exactly the quotient and is faster.
template <typename T>
Scaling<T> scaling_of(const KernelSpec& spec) {
  const bool power_of_two = (spec.divisor & (spec.divisor - 1)) == 0;
  return {.before = static_cast<T>(spec.prescale),
          .after = static_cast<T>(spec.postscale / spec.divisor),
          .divisor = static_cast<T>(spec.divisor),
          .divides = spec.postscale == 1 && !power_of_two,
          .rounds_between = spec.postscale != 1};
}

/// Pointers. Their number is known at compile time, or at run time if Count is 0.
template <typename Pointer, int Count>
struct Places {
  Pointer at[Count];
  Places(Pointer const* from, int) {
    for (int i = 0; i < Count; ++i) at[i] = from[i];
  }
  static constexpr int count() { return Count; }
};
template <typename Pointer>
struct Places<Pointer, 0> {
  Pointer const* at;
  int number;
  Places(Pointer const* from, int count) : at(from), number(count) {}
  int count() const { return number; }
};

template <typename In, typename Out, typename Op, Scales What>
struct Loop {
  using Acc = typename In::Acc;
  using V = Vec<Acc>;
  template <int Count>
  using Inputs = Places<const std::byte*, Count>;
  template <int Count>
  using Outputs = Places<std::byte*, Count>;

  // The most common reduction, of two inputs into one output, has a loop of its own.
  static constexpr bool kHasLoopOfTwo = std::is_same_v<Op, Sum>;
  static constexpr int kTwo = kHasLoopOfTwo ? 2 : 0;
  static constexpr int kOne = kHasLoopOfTwo ? 1 : 0;
  static constexpr bool kInPairs = std::is_same_v<In, Brain> && std::is_same_v<Out, Brain>;
  static constexpr std::size_t kStep = kLanes<Acc>;
  static constexpr int kGroup = kVectorBytes == 16 && kStep * Out::kBytes < 16 ? 8 : 4;
  static constexpr std::size_t kGroupStep = kGroup * kStep;
  static constexpr bool kStreams = kGroupStep * Out::kBytes % kLineBytes == 0;

  template <int Vectors>
  [[gnu::always_inline]] static void read(V (&values)[Vectors], const std::byte* from,
                                          const Scaling<Acc>& scaling) {
    if constexpr (kInPairs && Vectors > 1) {
      for (int v = 0; v < Vectors; v += 2) {
        In::load(from + static_cast<std::size_t>(v) * kStep * In::kBytes, values[v], values[v + 1]);
      }
    } else {
      for (int v = 0; v < Vectors; ++v) {
        values[v] = In::load(from + static_cast<std::size_t>(v) * kStep * In::kBytes);
      }
    }
    if constexpr (What == Scales::kAny) {
      for (int v = 0; v < Vectors; ++v) values[v] = In::stored(values[v] * scaling.before);
    }
  }

  template <int Vectors, int Count>
  [[gnu::always_inline]] static void reduce(V (&result)[Vectors], const Inputs<Count>& inputs,
                                            std::size_t at, const Scaling<Acc>& scaling) {
    read(result, inputs.at[0] + at * In::kBytes, scaling);
    for (int i = 1; i < inputs.count(); ++i) {
      V next[Vectors];
      read(next, inputs.at[i] + at * In::kBytes, scaling);
      for (int v = 0; v < Vectors; ++v) result[v] = Op::template of<Acc>(result[v], next[v]);
    }
    scale(result, scaling);
  }

  template <int Vectors>
  [[gnu::always_inline]] static void scale(V (&values)[Vectors], const Scaling<Acc>& scaling) {
    if constexpr (What == Scales::kAny) {
      if (scaling.rounds_between) {
        for (int v = 0; v < Vectors; ++v) values[v] = Out::stored(values[v]);
      }
    }
    if constexpr (What != Scales::kNone) {
      if (scaling.divides) {
        for (int v = 0; v < Vectors; ++v) values[v] /= scaling.divisor;
      } else {
        for (int v = 0; v < Vectors; ++v) values[v] *= scaling.after;
      }
    }
  }

  template <int Vectors, int InputCount, int OutputCount>
  [[gnu::always_inline]] static void group(const Inputs<InputCount>& inputs,
                                           const Outputs<OutputCount>& outputs, std::size_t at,
                                           const Scaling<Acc>& scaling, bool streaming) {
    V result[Vectors];
    reduce(result, inputs, at, scaling);
    if constexpr (kInPairs && Vectors > 1) {
      typename Out::Pair packed[Vectors / 2];
      for (int v = 0; v < Vectors; v += 2) packed[v / 2] = Out::pack(result[v], result[v + 1]);
      write(outputs, at, packed, streaming);
    } else {
      typename Out::Packed packed[Vectors];
      for (int v = 0; v < Vectors; ++v) packed[v] = Out::pack(result[v]);
      write(outputs, at, packed, streaming);
    }
  }

  template <typename Packed, std::size_t Count, int OutputCount>
  [[gnu::always_inline]] static void write(const Outputs<OutputCount>& outputs, std::size_t at,
                                           const Packed (&packed)[Count], bool streaming) {
    for (int o = 0; o < outputs.count(); ++o) {
      std::byte* const to = outputs.at[o] + at * Out::kBytes;
      if (kStreams && streaming && reinterpret_cast<std::uintptr_t>(to) % kLineBytes == 0) {
        for (std::size_t v = 0; v < Count; ++v) stream(to + v * sizeof(Packed), packed[v]);
      } else {
        for (std::size_t v = 0; v < Count; ++v) store(to + v * sizeof(Packed), packed[v]);
      }
    }
  }

  /// Reduces the elements from `at` to `end`, which are few.
  [[gnu::noinline]] static void few(const Inputs<0>& inputs, const Outputs<0>& outputs,
                                    std::size_t at, std::size_t end, const Scaling<Acc>& scaling) {
    for (; end - at >= kStep; at += kStep) group<1>(inputs, outputs, at, scaling, false);
    if constexpr (kStep > 1) {
      const std::size_t rest = end - at;
      if (rest == 0) return;
      alignas(kLineBytes) std::byte room[kLineBytes];
      V result[1];
      for (int i = 0; i < inputs.count(); ++i) {
        V next[1];
        fill_part(room, inputs.at[i] + at * In::kBytes, rest * In::kBytes);
        read(next, room, scaling);
        result[0] = i == 0 ? next[0] : Op::template of<Acc>(result[0], next[0]);
      }
      scale(result, scaling);
      store(room, Out::pack(result[0]));
      for (int o = 0; o < outputs.count(); ++o) {
        store_part(outputs.at[o] + at * Out::kBytes, room, rest * Out::kBytes);
      }
    }
  }

  /// The number of elements before the output's first whole line; 0 if no element begins at a line.
  static std::size_t before_line(const std::byte* output) {
    const std::size_t bytes = -reinterpret_cast<std::uintptr_t>(output) % kLineBytes;
    return bytes % Out::kBytes == 0 ? bytes / Out::kBytes : 0;
  }

  template <int InputCount, int OutputCount>
  [[gnu::noinline]] static std::size_t groups(Inputs<InputCount> inputs,
                                              Outputs<OutputCount> outputs, std::size_t at,
                                              std::size_t count, Scaling<Acc> scaling,
                                              bool streaming) {
    for (; count - at >= kGroupStep; at += kGroupStep) {
      group<kGroup>(inputs, outputs, at, scaling, streaming);
    }
    return at;
  }

  static void run(const Kernel& kernel, const std::byte* const* inputs, int n,
                  std::byte* const* outs, int n_out, std::size_t count, Stores stores) {
    Scaling<Acc> scaling;
    if constexpr (What != Scales::kNone) scaling = scaling_of<Acc>(spec_in(kernel));
    const bool streaming = kStreams && stores == Stores::kStreaming;
    const Inputs<0> in(inputs, n);
    const Outputs<0> out(outs, n_out);
    std::size_t at = 0;
    const std::size_t head = before_line(outs[0]);
    if (count >= head + kGroupStep) {
      if (head > 0) few(in, out, 0, head, scaling);
      if (kHasLoopOfTwo && n == 2 && n_out == 1) {
        at = groups<kTwo, kOne>({inputs, n}, {outs, n_out}, head, count, scaling, streaming);
      } else {
        at = groups<0, 0>(in, out, head, count, scaling, streaming);
      }
    }
    if (at < count) few(in, out, at, count, scaling);
    if (streaming) fence();
  }
};

// Integers with scales or a divisor. Each step by itself is a function from integers to integers:
// every input is multiplied in double and rounded towards zero, the operation wraps, its result is
// divided towards zero, or multiplied, divided and rounded again. Therefore a reduction in several steps,
// which keeps integers between them, has the same result as a reduction in one step. A product that
// is out of range becomes the nearest valid integer; NaN becomes 0.
//
// This is rare, and therefore simple: tile by tile in the first-level cache, in loops that the
// compiler vectorizes.

template <typename T>
struct ScaledIntegers {
  static constexpr std::size_t kTile = 512;
  static constexpr bool kSigned = std::is_signed_v<T>;
  static constexpr int kBits = static_cast<int>(8 * sizeof(T)) - (kSigned ? 1 : 0);
  static constexpr T kMost = static_cast<T>(~0ULL >> (64 - kBits));
  static constexpr T kLeast = kSigned ? static_cast<T>(~kMost) : T{0};
  // kMost + 1, which a double represents exactly.
  static constexpr double kBound = static_cast<double>(1ULL << (kBits - 1)) * 2;

  static T rounded(double value) {
    if (value >= kBound) return kMost;
    if (value <= static_cast<double>(kLeast)) return kLeast;
    return value == value ? static_cast<T>(value) : T{0};
  }

  // The quotient of the two numbers would be inexact: 55 * (3 / 11) is less than 15.
  static void multiply(T* values, std::size_t count, double factor, int divisor = 1) {
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = rounded(static_cast<double>(values[i]) * factor / divisor);
    }
  }

  // Truncated quotients of 32-bit integers are exact in double, and faster.
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
