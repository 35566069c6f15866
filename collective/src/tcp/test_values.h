// Values of every type, for tests that compare with a plain reference in double.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "muster/collective/types.h"

namespace muster::collective::testing {

namespace detail {

template <typename T>
void put(std::byte* place, T value) {
  std::memcpy(place, &value, sizeof value);
}

template <typename T>
T get(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

// Supports normal numbers only, and truncates: the tests use values with few digits.
inline std::uint16_t half_of(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto exponent = static_cast<std::uint32_t>((bits >> 23U & 0xffU) - 127 + 15);
  return static_cast<std::uint16_t>((bits >> 16U & 0x8000U) | exponent << 10U |
                                    (bits >> 13U & 0x3ffU));
}

inline float float_of(std::uint16_t half) {
  if ((half & 0x7fffU) == 0) return 0;
  const std::uint32_t exponent = (half >> 10U & 0x1fU) - 15 + 127;
  return std::bit_cast<float>((half & 0x8000U) << 16U | exponent << 23U | (half & 0x3ffU) << 13U);
}

}  // namespace detail

inline void store_value(DataType type, std::byte* place, double value) {
  using namespace detail;
  switch (type) {
    case DataType::kFloat32:
      return put(place, static_cast<float>(value));
    case DataType::kFloat64:
      return put(place, value);
    case DataType::kInt32:
      return put(place, static_cast<std::int32_t>(value));
    case DataType::kInt64:
      return put(place, static_cast<std::int64_t>(value));
    case DataType::kFloat16:
      return put(place, half_of(static_cast<float>(value)));
    case DataType::kBFloat16:
      return put(place, static_cast<std::uint16_t>(
                            std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16U));
    case DataType::kInt8:
      return put(place, static_cast<std::int8_t>(value));
    case DataType::kUInt8:
      return put(place, static_cast<std::uint8_t>(value));
    case DataType::kInt16:
      return put(place, static_cast<std::int16_t>(value));
    case DataType::kUInt16:
      return put(place, static_cast<std::uint16_t>(value));
    case DataType::kUInt32:
      return put(place, static_cast<std::uint32_t>(value));
    case DataType::kUInt64:
      return put(place, static_cast<std::uint64_t>(value));
    case DataType::kBool:
      return put(place, value != 0);
  }
}

inline double load_value(DataType type, const std::byte* place) {
  using namespace detail;
  switch (type) {
    case DataType::kFloat32:
      return static_cast<double>(get<float>(place));
    case DataType::kFloat64:
      return get<double>(place);
    case DataType::kInt32:
      return get<std::int32_t>(place);
    case DataType::kInt64:
      return static_cast<double>(get<std::int64_t>(place));
    case DataType::kFloat16:
      return static_cast<double>(float_of(get<std::uint16_t>(place)));
    case DataType::kBFloat16:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(place)) << 16U));
    case DataType::kInt8:
      return get<std::int8_t>(place);
    case DataType::kUInt8:
      return get<std::uint8_t>(place);
    case DataType::kInt16:
      return get<std::int16_t>(place);
    case DataType::kUInt16:
      return get<std::uint16_t>(place);
    case DataType::kUInt32:
      return get<std::uint32_t>(place);
    case DataType::kUInt64:
      return static_cast<double>(get<std::uint64_t>(place));
    case DataType::kBool:
      return get<bool>(place) ? 1 : 0;
  }
  return 0;
}

/// A small whole number that differs between ranks and elements: sums over a few ranks are exact in
/// every type.
inline double input_value(int rank, std::uint64_t index) {
  return static_cast<double>((index * 7 + static_cast<std::uint64_t>(rank) * 3) % 5);
}

inline std::vector<std::byte> input_of(DataType type, int rank, std::uint64_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::uint64_t i = 0; i < count; ++i) {
    store_value(type, bytes.data() + i * size_of(type), input_value(rank, i));
  }
  return bytes;
}

/// The expected result of the reduction of element `index` over all ranks.
inline double expected_value(DataType type, const Reduction& reduction, int ranks,
                             std::uint64_t index) {
  double result = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    double value = input_value(rank, index);
    if (type == DataType::kBool) value = value != 0 ? 1 : 0;
    value *= reduction.prescale;
    const bool is_first = rank == 0;
    switch (reduction.op) {
      case ReduceOp::kMin:
        result = is_first || value < result ? value : result;
        break;
      case ReduceOp::kMax:
        result = is_first || value > result ? value : result;
        break;
      case ReduceOp::kProduct:
        result = is_first ? value : result * value;
        break;
      default:
        result += value;
    }
  }
  result *= reduction.postscale;
  if (type == DataType::kBool) return result != 0 ? 1 : 0;
  return reduction.op == ReduceOp::kAverage ? result / ranks : result;
}

}  // namespace muster::collective::testing
