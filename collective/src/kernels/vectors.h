// Vectors of one instruction set: the compiler's own vector types (arithmetic, comparison and
// selection lane by lane), and by intrinsics what these cannot say.
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
using Shorts = Vec<std::uint16_t, kLanes<float>>;  // the same
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

/// A store past the caches; `to` is aligned to the value's size.
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

/// Streamed stores are ordered by nothing else.
inline void fence() {
#if MUSTER_KERNEL_BYTES > 0
  _mm_sfence();
#endif
}

/// Copies `bytes`, fewer than a vector has, out of an array or into it; `room` is a whole vector,
/// and what is not filled of it becomes 0.
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

}  // namespace muster::collective::MUSTER_KERNEL_ISA
