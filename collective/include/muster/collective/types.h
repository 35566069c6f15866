// The types and operations of reductions. The numbers are part of the wire format and of the C ABI
// and must never be reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::collective {

enum class DataType : std::uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kInt64 = 4,
  kFloat16 = 5,   // IEEE 754 binary16
  kBFloat16 = 6,  // the upper half of a float32
  kInt8 = 7,
  kUInt8 = 8,
  kInt16 = 9,
  kUInt16 = 10,
  kUInt32 = 11,
  kUInt64 = 12,
  kBool = 13,  // one byte; 0 is false, other values are true; results are 0 or 1
};

/// The operation that combines n values.
///
/// Integers wrap on overflow, and their average is the wrapped sum divided by n, towards zero.
/// 16-bit floats are reduced in float32 over all ranks and rounded once, to nearest even; an
/// average is divided before that. For bools sum and max are "or", product and min are "and"; they
/// have no average. A NaN in any rank's input is a NaN in the result of every operation, min and
/// max included: a diverged rank must not be hidden by its neighbours.
///
/// Adasum (Maleki et al., "Scaling distributed training with adaptive summation", MLSys 2021) adds
/// the orthogonal parts of two gradients and averages the parallel parts. Floats only.
///
/// The bitwise operations take integers and bools, without scales; for bools they are logical.
enum class ReduceOp : std::uint8_t {
  kSum = 1,
  kAverage = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
  kAdasum = 6,
  kBitAnd = 7,
  kBitOr = 8,
  kBitXor = 9,
};

/// An operation with its scales: every input is multiplied by `prescale` before, the result by
/// `postscale` after the operation, in float32 for 16-bit floats, in double for integers (then
/// rounded towards zero). Not for bools.
///
/// Each factor other than 1 is a step of its own, as in Horovod: 16-bit floats are rounded to their
/// type after the prescale and, where there is a postscale, also before it.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1;
  double postscale = 1;

  Reduction(ReduceOp operation = ReduceOp::kSum, double before = 1, double after = 1)
      : op(operation), prescale(before), postscale(after) {}
  bool operator==(const Reduction&) const = default;
};

/// 16-bit floats as bits in memory; the types of frameworks have the same bits.
struct Float16 {
  std::uint16_t bits = 0;
};
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// Bytes of one element; 0 for an invalid DataType.
std::size_t size_of(DataType type);

/// For messages: "float32", "sum".
std::string_view to_string(DataType type);
std::string_view to_string(ReduceOp op);

/// kBitAnd, kBitOr and kBitXor.
bool is_bitwise(ReduceOp op);

/// float16, bfloat16, float32 and float64.
bool is_float(DataType type);

/// The DataType of a C++ type; a type that cannot be reduced does not compile.
template <typename T>
inline constexpr DataType kDataTypeOf = [] {
  static_assert(sizeof(T) == 0, "this type cannot be reduced; DataType lists the types that can");
  return DataType{};
}();
template <>
inline constexpr DataType kDataTypeOf<float> = DataType::kFloat32;
template <>
inline constexpr DataType kDataTypeOf<double> = DataType::kFloat64;
template <>
inline constexpr DataType kDataTypeOf<Float16> = DataType::kFloat16;
template <>
inline constexpr DataType kDataTypeOf<BFloat16> = DataType::kBFloat16;
template <>
inline constexpr DataType kDataTypeOf<std::int8_t> = DataType::kInt8;
template <>
inline constexpr DataType kDataTypeOf<std::int16_t> = DataType::kInt16;
template <>
inline constexpr DataType kDataTypeOf<std::int32_t> = DataType::kInt32;
template <>
inline constexpr DataType kDataTypeOf<std::int64_t> = DataType::kInt64;
template <>
inline constexpr DataType kDataTypeOf<std::uint8_t> = DataType::kUInt8;
template <>
inline constexpr DataType kDataTypeOf<std::uint16_t> = DataType::kUInt16;
template <>
inline constexpr DataType kDataTypeOf<std::uint32_t> = DataType::kUInt32;
template <>
inline constexpr DataType kDataTypeOf<std::uint64_t> = DataType::kUInt64;
template <>
inline constexpr DataType kDataTypeOf<bool> = DataType::kBool;

}  // namespace muster::collective
