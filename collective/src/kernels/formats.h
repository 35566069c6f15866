// Vectors of one instruction set: the compiler's own vector types (arithmetic, comparison and
// selection lane by lane), and intrinsics for operations that these types cannot express.
//
// Included by one source file per instruction set, which defines MUSTER_KERNEL_ISA (the namespace)
// and MUSTER_KERNEL_BYTES (the width of a vector; 0 for one element).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if MUSTER_KERNEL_BYTES > 0
#include <immintrin.h>
#endif

namespace muster::collective::MUSTER_KERNEL_ISA {

inline constexpr std::size_t kVectorBytes = MUSTER_KERNEL_BYTES;
inline constexpr std::size_t kLineBytes = 64;

template <typename T>
inline constexpr std::size_t kLanes = kVectorBytes > sizeof(T) ? kVectorBytes / sizeof(T) : 1;

template <typename T, std::size_t Count>
struct VectorOf {
  using Type __attribute__((vector_size(Count * sizeof(T)))) = T;
};
template <typename T, std::size_t Count = kLanes<T>>
using Vec = typename VectorOf<T, Count>::Type;

using Floats = Vec<float>;
using Words = Vec<std::uint32_t>;                  // as many lanes as Floats
using Shorts = Vec<std::uint16_t, kLanes<float>>;  // as many lanes as Floats
using SignedWords = Vec<std::int32_t, kLanes<float>>;

template <typename V>
[[gnu::always_inline]] inline V load(const std::byte* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename V>
[[gnu::always_inline]] inline void store(std::byte* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

/// A store that bypasses the caches; `to` is aligned to the value's size.
template <typename V>
[[gnu::always_inline]] inline void stream(std::byte* to, V value) {
#if MUSTER_KERNEL_BYTES > 0
  if constexpr (sizeof(V) == 8) {
    long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof bits);
    _mm_stream_si64(reinterpret_cast<long long*>(to), bits);
    return;
  }
  if constexpr (sizeof(V) == 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(value));
    return;
  }
#endif
#if MUSTER_KERNEL_BYTES >= 32
  if constexpr (sizeof(V) == 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(value));
    return;
  }
#endif
#if MUSTER_KERNEL_BYTES >= 64
  if constexpr (sizeof(V) == 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(value));
    return;
  }
#endif
  store(to, value);
}

/// Orders streamed stores, which no other operation orders.
inline void fence() {
#if MUSTER_KERNEL_BYTES > 0
  _mm_sfence();
#endif
}

/// Copies `bytes` bytes, fewer than a vector has, out of an array or into it. `room` is a whole
/// vector; the rest of it becomes 0.
inline void fill_part(std::byte* room, const std::byte* from, std::size_t bytes) {
#if MUSTER_KERNEL_BYTES == 64
  const __mmask64 mask = (1ULL << bytes) - 1;
  _mm512_storeu_si512(room, _mm512_maskz_loadu_epi8(mask, from));
#else
  __builtin_memset(room, 0, kVectorBytes);
  __builtin_memcpy(room, from, bytes);
#endif
}

inline void store_part(std::byte* to, const std::byte* room, std::size_t bytes) {
#if MUSTER_KERNEL_BYTES == 64
  const __mmask64 mask = (1ULL << bytes) - 1;
  _mm512_mask_storeu_epi8(to, mask, _mm512_loadu_si512(room));
#else
  __builtin_memcpy(to, room, bytes);
#endif
}

// A format describes how elements are stored in memory and how they are held while they are
// reduced. It loads a vector of its accumulator, and packs such a vector into the stored type.
//
// stored() returns what a later load of a packed value returns: the value, rounded to the stored
// type.
//
// Every stored NaN is the same NaN. Which of two NaNs an addition returns depends on the order of
// its operands, which compilers swap freely. Without this rule, results would differ between
// instruction sets.

inline constexpr std::uint32_t kFloatNan = 0x7fc00000;

[[gnu::always_inline]] inline Floats with_one_nan(Floats value) {
  return value == value ? value : reinterpret_cast<Floats>(Words{} + kFloatNan);
}

[[gnu::always_inline]] inline Vec<double> with_one_nan(Vec<double> value) {
  constexpr std::uint64_t kNan = 0x7ff8000000000000;
  return value == value ? value : reinterpret_cast<Vec<double>>(Vec<std::uint64_t>{} + kNan);
}

/// The stored type is the accumulator: float, double and the integers.
template <typename T>
struct Same {
  using Acc = T;
  using Packed = Vec<T>;
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr bool kIsShortFloat = false;

  [[gnu::always_inline]] static Vec<T> load(const std::byte* from) {
    return MUSTER_KERNEL_ISA::load<Vec<T>>(from);
  }
  [[gnu::always_inline]] static Packed pack(Vec<T> value) {
    if constexpr (std::is_floating_point_v<T>) {
      return with_one_nan(value);
    } else {
      return value;
    }
  }
  [[gnu::always_inline]] static Vec<T> stored(Vec<T> value) { return value; }
};

/// Bytes that become 0 or 1, so that min is "and", and max is "or".
struct Truth {
  using Acc = std::uint8_t;
  using Packed = Vec<std::uint8_t>;
  static constexpr std::size_t kBytes = 1;

  [[gnu::always_inline]] static Packed load(const std::byte* from) {
    const auto raw = MUSTER_KERNEL_ISA::load<Packed>(from);
    const Packed one = Packed{} + std::uint8_t{1};
    return raw < one ? raw : one;
  }
  [[gnu::always_inline]] static Packed pack(Packed value) { return value; }
};

struct Brain {
  using Acc = float;
  using Packed = Shorts;
  static constexpr std::size_t kBytes = 2;
  static constexpr bool kIsShortFloat = true;
  using Pair = Vec<std::uint16_t, 2 * kLanes<float>>;

  [[gnu::always_inline]] static Floats load(const std::byte* from) {
    const auto bits = __builtin_convertvector(MUSTER_KERNEL_ISA::load<Shorts>(from), Words);
    return reinterpret_cast<Floats>(bits << 16);
  }

  [[gnu::always_inline]] static Packed pack(Floats value) {
    return __builtin_convertvector(rounded(value) >> 16, Shorts);
  }
  [[gnu::always_inline]] static Floats stored(Floats value) {
    return reinterpret_cast<Floats>(rounded(value) & 0xffff0000U);
  }

  // Returns two vectors from the bytes of one: the elements at even and at odd places. That takes
  // no shuffles, and the order of lanes does not matter between a load and a store.
  [[gnu::always_inline]] static void load(const std::byte* from, Floats& even, Floats& odd) {
    const auto both = MUSTER_KERNEL_ISA::load<Words>(from);
    even = reinterpret_cast<Floats>(both << 16);
    odd = reinterpret_cast<Floats>(both & 0xffff0000U);
  }
  [[gnu::always_inline]] static Pair pack(Floats even, Floats odd) {
    return reinterpret_cast<Pair>((rounded(even) >> 16) | (rounded(odd) & 0xffff0000U));
  }

  // The upper half is the result, rounded to nearest, ties to even: half of its last place is
  // added, or slightly less if the last place is even. An overflow carries into infinity, as it
  // should. The canonical NaN has zeros where the carry would begin.
  [[gnu::always_inline]] static Words rounded(Floats value) {
    const auto bits = reinterpret_cast<Words>(with_one_nan(value));
    return bits + 0x7fffU + ((bits >> 16) & 1U);
  }
};

struct Half {
  using Acc = float;
  using Packed = Shorts;
  static constexpr std::size_t kBytes = 2;
  static constexpr bool kIsShortFloat = true;

  [[gnu::always_inline]] static Floats load(const std::byte* from) {
    return unpack(MUSTER_KERNEL_ISA::load<Shorts>(from));
  }
  [[gnu::always_inline]] static Floats stored(Floats value) { return unpack(pack(value)); }

#if MUSTER_KERNEL_BYTES == 64
  [[gnu::always_inline]] static Floats unpack(Packed bits) {
    return reinterpret_cast<Floats>(_mm512_cvtph_ps(reinterpret_cast<__m256i>(bits)));
  }
  [[gnu::always_inline]] static Packed pack(Floats value) {
    const auto one_nan = reinterpret_cast<__m512>(with_one_nan(value));
    return reinterpret_cast<Packed>(_mm512_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
  }
#elif MUSTER_KERNEL_BYTES == 32
  [[gnu::always_inline]] static Floats unpack(Packed bits) {
    return reinterpret_cast<Floats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(bits)));
  }
  [[gnu::always_inline]] static Packed pack(Floats value) {
    const auto one_nan = reinterpret_cast<__m256>(with_one_nan(value));
    return reinterpret_cast<Packed>(_mm256_cvtps_ph(one_nan, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  // The exponent's bias grows from 15 to 127. A subnormal number gets the exponent of the smallest
  // normal number, which is then subtracted. Infinity and NaN keep the greatest exponent.
  [[gnu::always_inline]] static Floats unpack(Packed packed) {
    const auto half = __builtin_convertvector(packed, Words);
    const Words sign = (half & 0x8000U) << 16;
    const Words magnitude = (half & 0x7fffU) << 13;
    const Words normal = magnitude + (112U << 23);
    const auto smallest = reinterpret_cast<Floats>(Words{} + (113U << 23));
    const auto subnormal = reinterpret_cast<Floats>(normal + (1U << 23)) - smallest;
    Words bits = magnitude < (1U << 23) ? reinterpret_cast<Words>(subnormal) : normal;
    bits = magnitude >= (31U << 23) ? magnitude | (255U << 23) : bits;
    return reinterpret_cast<Floats>(bits | sign);
  }

  // Normal numbers are rounded as in Brain. For subnormal halves 0.5 is added, whose last place
  // equals that of a subnormal half, so that the processor rounds them. Comparisons use signed
  // words, since SSE has no unsigned ones.
  [[gnu::always_inline]] static Packed pack(Floats value) {
    const auto all = reinterpret_cast<Words>(value);
    const Words sign = all & 0x80000000U;
    const Words bits = all ^ sign;
    const auto magnitude = reinterpret_cast<SignedWords>(bits);
    const Words normal = (bits - (112U << 23) + 0xfffU + ((bits >> 13) & 1U)) >> 13;
    const Words half = Words{} + (126U << 23);
    const auto shifted = reinterpret_cast<Floats>(bits) + reinterpret_cast<Floats>(half);
    const auto subnormal = reinterpret_cast<Words>(shifted) - half;
    Words packed = magnitude < (113 << 23) ? subnormal : normal;
    packed = magnitude >= (143 << 23) ? Words{} + 0x7c00U : packed;
    packed |= sign >> 16;
    packed = magnitude > (255 << 23) ? Words{} + 0x7e00U : packed;
    return __builtin_convertvector(packed, Shorts);
  }
#endif
};

}  // namespace muster::collective::MUSTER_KERNEL_ISA
