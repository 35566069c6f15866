// The expected results of kernels, element by element, in the simplest code; for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/kernel.h"

namespace muster::collective::reference {

using Bytes = std::vector<std::byte>;

template <typename T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// A 16-bit float with these numbers of bits for exponent and fraction.
struct ShortFormat {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr ShortFormat kHalf{5, 10};
inline constexpr ShortFormat kBrain{8, 7};

inline float decode(std::uint16_t bits, ShortFormat format) {
  const int exponent = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const float sign = (bits & 0x8000) != 0 ? -1.F : 1.F;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  }
  const int whole = exponent == 0 ? 0 : 1 << format.fraction_bits;
  const int power = (exponent == 0 ? 1 : exponent) - format.bias() - format.fraction_bits;
  return sign * std::ldexp(static_cast<float>(whole + fraction), power);
}

/// Rounds to the nearest value with nearbyint(), in units of the last place.
inline std::uint16_t encode(float value, ShortFormat format) {
  const int infinity = ((1 << format.exponent_bits) - 1) << format.fraction_bits;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(infinity | 1 << (format.fraction_bits - 1));
  }
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = 1;
  if (magnitude > 0) exponent = std::max(exponent, std::ilogb(magnitude) + format.bias());
  const int last_place = exponent - format.bias() - format.fraction_bits;
  const int places = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -last_place)));
  // The leading 1 of a normal number adds one to the exponent.
  const int bits = ((exponent - 1) << format.fraction_bits) + places;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

template <typename T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kSum) return a + b;
    if (op == ReduceOp::kProduct) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool less = a < b || (a == b && std::signbit(a));
    return less == (op == ReduceOp::kMin) ? a : b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const auto x = std::uint64_t{static_cast<Unsigned>(a)};
    const auto y = std::uint64_t{static_cast<Unsigned>(b)};
    if (op == ReduceOp::kSum) return static_cast<T>(x + y);
    if (op == ReduceOp::kProduct) return static_cast<T>(x * y);
    return (a < b) == (op == ReduceOp::kMin) ? a : b;
  }
}

template <typename T>
T scale(T value, double factor, int divisor = 1) {
  if constexpr (std::is_floating_point_v<T>) {
    return value * static_cast<T>(factor / divisor);
  } else {
    const double scaled = std::trunc(static_cast<double>(value) * factor / divisor);
    if (std::isnan(scaled)) return 0;
    if (scaled >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    if (scaled <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    return static_cast<T>(scaled);
  }
}

template <typename T>
T finish(T value, const KernelSpec& spec) {
  if (spec.postscale != 1) return scale(value, spec.postscale, spec.divisor);
  if (spec.divisor == 1) return value;
  if constexpr (sizeof(T) == 8 || std::is_floating_point_v<T>) {
    return value / static_cast<T>(spec.divisor);
  } else {
    return static_cast<T>(static_cast<std::int64_t>(value) / spec.divisor);
  }
}

/// stored_in, stored_out: round a value to the type of the inputs, and to that of the output.
template <typename T, typename In, typename Out>
T reduce(const KernelSpec& spec, const std::vector<T>& values, In stored_in, Out stored_out) {
  const auto before = [&](T value) {
    return spec.prescale == 1 ? value : stored_in(scale(value, spec.prescale));
  };
  T result = before(values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    result = combine(spec.op, result, before(values[i]));
  }
  return finish(spec.postscale == 1 ? result : stored_out(result), spec);
}

template <typename T>
void reduce_one(const KernelSpec& spec, const std::vector<const std::byte*>& from, std::byte* to) {
  std::vector<T> values;
  for (const std::byte* const at : from) values.push_back(get<T>(at));
  const auto same = [](T value) { return value; };
  put(to, reduce(spec, values, same, same));
}

inline void reduce_short(const KernelSpec& spec, ShortFormat format,
                         const std::vector<const std::byte*>& from, std::byte* to) {
  std::vector<float> values;
  for (const std::byte* const at : from) {
    values.push_back(spec.wide_in ? get<float>(at) : decode(get<std::uint16_t>(at), format));
  }
  const auto stored = [&](bool is_wide) {
    return [=](float value) { return is_wide ? value : decode(encode(value, format), format); };
  };
  const float result = reduce(spec, values, stored(spec.wide_in), stored(spec.wide_out));
  if (spec.wide_out) {
    put(to, result);
  } else {
    put(to, encode(result, format));
  }
}

inline void reduce_bool(const KernelSpec& spec, const std::vector<const std::byte*>& from,
                        std::byte* to) {
  const bool is_or = spec.op == ReduceOp::kSum || spec.op == ReduceOp::kMax;
  bool result = !is_or;
  for (const std::byte* const at : from) {
    const bool value = *at != std::byte{0};
    result = is_or ? result || value : result && value;
  }
  put(to, result);
}

/// Reduces one element of each input.
inline void reduce_element(const KernelSpec& spec, const std::vector<const std::byte*>& from,
                           std::byte* to) {
  switch (spec.type) {
    case DataType::kFloat32:
      return reduce_one<float>(spec, from, to);
    case DataType::kFloat64:
      return reduce_one<double>(spec, from, to);
    case DataType::kInt8:
      return reduce_one<std::int8_t>(spec, from, to);
    case DataType::kInt16:
      return reduce_one<std::int16_t>(spec, from, to);
    case DataType::kInt32:
      return reduce_one<std::int32_t>(spec, from, to);
    case DataType::kInt64:
      return reduce_one<std::int64_t>(spec, from, to);
    case DataType::kUInt8:
      return reduce_one<std::uint8_t>(spec, from, to);
    case DataType::kUInt16:
      return reduce_one<std::uint16_t>(spec, from, to);
    case DataType::kUInt32:
      return reduce_one<std::uint32_t>(spec, from, to);
    case DataType::kUInt64:
      return reduce_one<std::uint64_t>(spec, from, to);
    case DataType::kFloat16:
      return reduce_short(spec, kHalf, from, to);
    case DataType::kBFloat16:
      return reduce_short(spec, kBrain, from, to);
    case DataType::kBool:
      return reduce_bool(spec, from, to);
  }
}

inline DataType type_out(const KernelSpec& spec) {
  return spec.wide_out ? wide_type_of(spec.type) : spec.type;
}

/// Replaces a NaN by the canonical NaN that kernels write.
inline void make_nan_canonical(DataType type, std::byte* at) {
  if (type == DataType::kFloat32 && std::isnan(get<float>(at))) put(at, 0x7fc00000U);
  if (type == DataType::kFloat64 && std::isnan(get<double>(at))) {
    put(at, std::uint64_t{0x7ff8000000000000});
  }
}

inline Bytes reduce(const KernelSpec& spec, const std::vector<Bytes>& inputs, std::size_t count) {
  const std::size_t in_bytes = size_of(spec.wide_in ? wide_type_of(spec.type) : spec.type);
  const std::size_t out_bytes = size_of(type_out(spec));
  Bytes out(count * out_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<const std::byte*> from;
    for (const Bytes& input : inputs) from.push_back(input.data() + i * in_bytes);
    reduce_element(spec, from, out.data() + i * out_bytes);
    make_nan_canonical(type_out(spec), out.data() + i * out_bytes);
  }
  return out;
}

}  // namespace muster::collective::reference
