#include "ring/reduce.h"

#include <type_traits>

namespace muster::collective {
namespace {

// Signed overflow is undefined, unsigned overflow wraps, and both give the same bits.
template <typename T, typename Combine>
T wrapping(T a, T b, Combine combine) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(combine(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return combine(a, b);
  }
}

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};

struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};

// `a != a` holds for NaN alone: it keeps a NaN in `a`; one in `b` fails the comparison and is
// taken.
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

template <typename T, typename Combine>
void combine_all(T* __restrict accumulator, const T* __restrict operand, std::size_t count,
                 Combine combine) {
  for (std::size_t i = 0; i < count; ++i) accumulator[i] = combine(accumulator[i], operand[i]);
}

template <typename T>
void reduce_as(void* accumulator, const void* operand, std::size_t count, ReduceOp op) {
  T* const into = static_cast<T*>(accumulator);
  const T* const from = static_cast<const T*>(operand);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return combine_all(into, from, count, Sum{});
    case ReduceOp::kMin:
      return combine_all(into, from, count, Min{});
    case ReduceOp::kMax:
      return combine_all(into, from, count, Max{});
    case ReduceOp::kProduct:
      return combine_all(into, from, count, Product{});
  }
}

template <typename T>
void divide(void* data, std::size_t count, int ranks) {
  T* const values = static_cast<T*>(data);
  const T divisor = static_cast<T>(ranks);
  for (std::size_t i = 0; i < count; ++i) values[i] /= divisor;
}

// Calls `with` with a null pointer of the C++ type that `type` stands for.
template <typename With>
void for_type(DataType type, With with) {
  switch (type) {
    case DataType::kFloat32:
      return with(static_cast<float*>(nullptr));
    case DataType::kFloat64:
      return with(static_cast<double*>(nullptr));
    case DataType::kInt32:
      return with(static_cast<std::int32_t*>(nullptr));
    case DataType::kInt64:
      return with(static_cast<std::int64_t*>(nullptr));
  }
}

}  // namespace

void reduce_into(void* accumulator, const void* operand, std::size_t count, DataType type,
                 ReduceOp op) {
  for_type(type, [&]<typename T>(T*) { reduce_as<T>(accumulator, operand, count, op); });
}

void finish_average(void* data, std::size_t count, DataType type, int ranks) {
  for_type(type, [&]<typename T>(T*) { divide<T>(data, count, ranks); });
}

}  // namespace muster::collective
