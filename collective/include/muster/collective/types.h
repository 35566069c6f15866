// What can be reduced, and how. The numbers are part of the wire format: never reuse one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::collective {

enum class DataType : std::uint8_t { kFloat32 = 1, kFloat64 = 2, kInt32 = 3, kInt64 = 4 };

/// How n values become one.
///
/// Integers wrap on overflow, and their average is the wrapped sum divided by n, towards zero.
/// A NaN in any rank's input is a NaN in the result of every operation, min and max included:
/// a diverged rank must not be hidden by its neighbours.
enum class ReduceOp : std::uint8_t { kSum = 1, kAverage = 2, kMin = 3, kMax = 4, kProduct = 5 };

/// Bytes of one element.
std::size_t size_of(DataType type);

/// As in messages: "float32", "sum".
std::string_view to_string(DataType type);
std::string_view to_string(ReduceOp op);

/// The DataType of a C++ type; a type that cannot be reduced does not compile.
template <typename T>
inline constexpr DataType kDataTypeOf = [] {
  static_assert(sizeof(T) == 0, "only float, double, std::int32_t and std::int64_t are reduced");
  return DataType{};
}();
template <>
inline constexpr DataType kDataTypeOf<float> = DataType::kFloat32;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::kFloat64;
template <>
inline constexpr DataType kDataTypeOf<std::int32_t> = DataType::kInt32;
template <>
inline constexpr DataType kDataTypeOf<std::int64_t> = DataType::kInt64;

}  // namespace muster::collective
