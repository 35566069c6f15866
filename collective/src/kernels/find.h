// Finds the kernel of a spec among the kernels of one instruction set.
//
// Included by one source file of each instruction set, as formats.h is.
#pragma once

#include "kernels/loop.h"

namespace muster::collective::MUSTER_KERNEL_ISA {

template <typename In, typename Out, Scales What>
Kernel::Run find_float(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Loop<In, Out, Sum, What>::run;
    case ReduceOp::kMin:
      return Loop<In, Out, Min, What>::run;
    case ReduceOp::kMax:
      return Loop<In, Out, Max, What>::run;
    case ReduceOp::kProduct:
      return Loop<In, Out, Product, What>::run;
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum:
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;
  }
  return nullptr;
}

template <typename T>
Kernel::Run find_integer(ReduceOp op) {
  using Value = Same<T>;
  using Wrapping = Same<std::make_unsigned_t<T>>;
  switch (op) {
    case ReduceOp::kSum:
      return Loop<Wrapping, Wrapping, Sum, Scales::kNone>::run;
    case ReduceOp::kMin:
      return Loop<Value, Value, Min, Scales::kNone>::run;
    case ReduceOp::kMax:
      return Loop<Value, Value, Max, Scales::kNone>::run;
    case ReduceOp::kProduct:
      return Loop<Wrapping, Wrapping, Product, Scales::kNone>::run;
    case ReduceOp::kBitAnd:
      return Loop<Wrapping, Wrapping, And, Scales::kNone>::run;
    case ReduceOp::kBitOr:
      return Loop<Wrapping, Wrapping, Or, Scales::kNone>::run;
    case ReduceOp::kBitXor:
      return Loop<Wrapping, Wrapping, Xor, Scales::kNone>::run;
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum:
      break;
  }
  return nullptr;
}

inline Kernel::Run find_bool(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kBitOr:
      return Loop<Truth, Truth, Max, Scales::kNone>::run;
    case ReduceOp::kMin:
    case ReduceOp::kProduct:
    case ReduceOp::kBitAnd:
      return Loop<Truth, Truth, Min, Scales::kNone>::run;
    case ReduceOp::kBitXor:
      return Loop<Truth, Truth, Xor, Scales::kNone>::run;
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum:
      break;
  }
  return nullptr;
}

inline bool has_factors(const KernelSpec& spec) {
  return spec.prescale != 1 || spec.postscale != 1;
}

inline bool is_scaled(const KernelSpec& spec) {
  return has_factors(spec) || spec.divisor != 1;
}

template <typename In, typename Out>
Kernel::Run find_float(const KernelSpec& spec) {
  if (!is_scaled(spec)) return find_float<In, Out, Scales::kNone>(spec.op);
  // If nothing is rounded between the steps, one loop serves both averages and factors.
  if constexpr (In::kIsShortFloat || Out::kIsShortFloat) {
    const bool is_average = spec.op == ReduceOp::kSum && !has_factors(spec);
    if (is_average) return Loop<In, Out, Sum, Scales::kDivisor>::run;
  }
  return find_float<In, Out, Scales::kAny>(spec.op);
}

template <typename Narrow>
Kernel::Run find_short_float(const KernelSpec& spec) {
  if (spec.wide_in && spec.wide_out) return find_float<Same<float>, Same<float>>(spec);
  if (spec.wide_in) return find_float<Same<float>, Narrow>(spec);
  if (spec.wide_out) return find_float<Narrow, Same<float>>(spec);
  return find_float<Narrow, Narrow>(spec);
}

template <typename T>
Kernel::Run find_integer(const KernelSpec& spec) {
  const Kernel::Run plain = find_integer<T>(spec.op);
  return plain != nullptr && is_scaled(spec) ? ScaledIntegers<T>::run : plain;
}

// Reads the inputs of a tile one by one only if each input must be scaled.
template <typename T>
void ScaledIntegers<T>::run(const Kernel& kernel, const std::byte* const* inputs, int n,
                            std::byte* const* outs, int n_out, std::size_t count, Stores stores) {
  const KernelSpec& spec = spec_in(kernel);
  const Kernel::Run combine = find_integer<T>(spec.op);
  const Kernel::Run write = find_integer<T>(ReduceOp::kMax);
  T result[kTile];
  T scaled[kTile];
  const auto bytes = [](T* values) { return reinterpret_cast<std::byte*>(values); };
  for (std::size_t at = 0; at < count; at += kTile) {
    const std::size_t size = count - at < kTile ? count - at : kTile;
    for (int i = 0; i < n; ++i) {
      T* const into = i == 0 ? result : scaled;
      __builtin_memcpy(into, inputs[i] + at * sizeof(T), size * sizeof(T));
      if (spec.prescale != 1) multiply(into, size, spec.prescale);
      const std::byte* const both[] = {bytes(result), bytes(scaled)};
      std::byte* const sum = bytes(result);
      if (i > 0) combine(kernel, both, 2, &sum, 1, size, Stores::kCached);
    }
    if (spec.postscale != 1) {
      multiply(result, size, spec.postscale, spec.divisor);
    } else if (spec.divisor != 1) {
      divide(result, size, spec.divisor);
    }
    const std::byte* const from = bytes(result);
    for (int o = 0; o < n_out; ++o) {
      std::byte* const to = outs[o] + at * sizeof(T);
      write(kernel, &from, 1, &to, 1, size, stores);
    }
  }
}

Kernel::Run find(const KernelSpec& spec) {
  switch (spec.type) {
    case DataType::kFloat32:
      return find_float<Same<float>, Same<float>>(spec);
    case DataType::kFloat64:
      return find_float<Same<double>, Same<double>>(spec);
    case DataType::kFloat16:
      return find_short_float<Half>(spec);
    case DataType::kBFloat16:
      return find_short_float<Brain>(spec);
    case DataType::kInt8:
      return find_integer<std::int8_t>(spec);
    case DataType::kInt16:
      return find_integer<std::int16_t>(spec);
    case DataType::kInt32:
      return find_integer<std::int32_t>(spec);
    case DataType::kInt64:
      return find_integer<std::int64_t>(spec);
    case DataType::kUInt8:
      return find_integer<std::uint8_t>(spec);
    case DataType::kUInt16:
      return find_integer<std::uint16_t>(spec);
    case DataType::kUInt32:
      return find_integer<std::uint32_t>(spec);
    case DataType::kUInt64:
      return find_integer<std::uint64_t>(spec);
    case DataType::kBool:
      return find_bool(spec.op);
  }
  return nullptr;
}

}  // namespace muster::collective::MUSTER_KERNEL_ISA
