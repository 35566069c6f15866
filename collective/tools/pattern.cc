#include "pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace muster::collective::bench {
namespace {

constexpr std::uint64_t kPeriod = 3;

int value_at(int rank, std::uint64_t i) {
  return (static_cast<std::uint64_t>(rank) + i) % kPeriod == 0 ? 2 : 1;
}

double reduced_at(ReduceOp op, int ranks, std::uint64_t i) {
  double result = value_at(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = value_at(rank, i);
    if (op == ReduceOp::kMin) {
      result = std::min(result, next);
    } else if (op == ReduceOp::kMax) {
      result = std::max(result, next);
    } else if (op == ReduceOp::kProduct) {
      result *= next;
    } else {
      result += next;
    }
  }
  return op == ReduceOp::kAverage ? result / ranks : result;
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, int value) {
  const T typed = static_cast<T>(value);
  std::memcpy(to, &typed, sizeof(T));
}

// Writes 1 or 2 as a value of any type.
void encode(std::byte* to, DataType type, int value) {
  switch (type) {
    case DataType::kFloat32:
      return store<float>(to, value);
    case DataType::kFloat64:
      return store<double>(to, value);
    case DataType::kFloat16:
      return store<std::uint16_t>(to, value == 1 ? 0x3C00 : 0x4000);
    case DataType::kBFloat16:
      return store<std::uint16_t>(to, value == 1 ? 0x3F80 : 0x4000);
    case DataType::kInt8:
    case DataType::kUInt8:
      return store<std::uint8_t>(to, value);
    case DataType::kBool:
      return store<std::uint8_t>(to, 1);
    case DataType::kInt16:
    case DataType::kUInt16:
      return store<std::uint16_t>(to, value);
    case DataType::kInt32:
    case DataType::kUInt32:
      return store<std::uint32_t>(to, value);
    case DataType::kInt64:
    case DataType::kUInt64:
      return store<std::uint64_t>(to, value);
  }
}

// Converts normal numbers and zero: other values do not occur in a reduction of the pattern.
double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return HUGE_VAL;
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

double decode(const std::byte* from, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return static_cast<double>(load<float>(from));
    case DataType::kFloat64:
      return load<double>(from);
    case DataType::kFloat16:
      return half(load<std::uint16_t>(from));
    case DataType::kBFloat16:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(from)) << 16));
    case DataType::kInt8:
    case DataType::kUInt8:
    case DataType::kBool:
      return load<std::uint8_t>(from);
    case DataType::kInt16:
    case DataType::kUInt16:
      return load<std::uint16_t>(from);
    case DataType::kInt32:
    case DataType::kUInt32:
      return load<std::uint32_t>(from);
    default:
      return static_cast<double>(load<std::uint64_t>(from));
  }
}

// Half a unit in the last place of a bfloat16 is 2^-9 of the value.
double tolerance_of(DataType type, ReduceOp op) {
  if (type == DataType::kBFloat16) return 1.0 / 256;
  if (type == DataType::kFloat16) return 1.0 / 2048;
  return op == ReduceOp::kAverage ? 1e-6 : 0;
}

// The sum of many ranks may exceed the range of an 8-bit integer, and wraps.
double as_stored(double value, DataType type) {
  if (type == DataType::kBool) return 1;
  if (is_float(type)) return value;
  const double modulus = std::ldexp(1, static_cast<int>(8 * size_of(type)));
  return std::fmod(std::floor(value), modulus);
}

// Whether the data repeats after the first period: every element equals the element three places
// before.
bool repeats(const std::byte* data, std::uint64_t count, std::size_t width) {
  if (count <= kPeriod) return true;
  const std::size_t period = kPeriod * width;
  return std::memcmp(data, data + period, count * width - period) == 0;
}

}  // namespace

void fill(std::byte* data, std::uint64_t count, DataType type, int rank, std::uint64_t first) {
  const std::size_t width = size_of(type);
  for (std::uint64_t i = 0; i < std::min(count, kPeriod); ++i) {
    encode(data + i * width, type, value_at(rank, first + i));
  }
  // Doubles the written part, which always consists of whole periods.
  const std::size_t bytes = count * width;
  for (std::size_t done = kPeriod * width; done < bytes; done *= 2) {
    std::memcpy(data + done, data, std::min(done, bytes - done));
  }
}

bool is_pattern(const std::byte* data, std::uint64_t count, DataType type, int rank,
                std::uint64_t first) {
  const std::size_t width = size_of(type);
  for (std::uint64_t i = 0; i < std::min(count, kPeriod); ++i) {
    const double expected = as_stored(value_at(rank, first + i), type);
    if (decode(data + i * width, type) != expected) return false;
  }
  return repeats(data, count, width);
}

bool is_reduced(const std::byte* data, std::uint64_t count, DataType type, ReduceOp op, int ranks,
                std::uint64_t first) {
  const std::size_t width = size_of(type);
  for (std::uint64_t i = 0; op != ReduceOp::kAdasum && i < std::min(count, kPeriod); ++i) {
    const double expected = as_stored(reduced_at(op, ranks, first + i), type);
    const double off = std::abs(decode(data + i * width, type) - expected);
    if (!(off <= tolerance_of(type, op) * expected)) return false;
  }
  return repeats(data, count, width);
}

}  // namespace muster::collective::bench
