#include "ring/reduce.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace muster::collective {
namespace {

template <typename T>
class Reduce : public ::testing::Test {
 protected:
  // One element of each operation, as the reference has it.
  T combined(ReduceOp op, T a, T b) {
    reduce_into(&a, &b, 1, kDataTypeOf<T>, op);
    return a;
  }
};

using Types = ::testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Reduce, Types);

TYPED_TEST(Reduce, CombinesEachElementByTheOperation) {
  struct Row {
    ReduceOp op;
    TypeParam result;
  };
  for (const Row& row : {Row{ReduceOp::kSum, 9},
                         {ReduceOp::kAverage, 9},
                         {ReduceOp::kMin, 2},
                         {ReduceOp::kMax, 7},
                         {ReduceOp::kProduct, 14}}) {
    EXPECT_EQ(this->combined(row.op, 2, 7), row.result) << to_string(row.op);
    EXPECT_EQ(this->combined(row.op, 7, 2), row.result) << to_string(row.op);
  }
}

TYPED_TEST(Reduce, TouchesTheCountedElementsOnly) {
  std::array<TypeParam, 5> into = {1, 2, 3, 4, 5};
  const std::array<TypeParam, 5> from = {10, 10, 10, 10, 10};
  reduce_into(into.data(), from.data(), 3, kDataTypeOf<TypeParam>, ReduceOp::kSum);
  EXPECT_EQ(into, (std::array<TypeParam, 5>{11, 12, 13, 4, 5}));
}

TYPED_TEST(Reduce, AveragesByDividing) {
  std::array<TypeParam, 3> values = {9, -9, 1};
  finish_average(values.data(), values.size(), kDataTypeOf<TypeParam>, 3);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], -3);
  EXPECT_EQ(values[2], TypeParam{1} / TypeParam{3});
}

template <typename T>
class ReduceIntegers : public Reduce<T> {};
using Integers = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ReduceIntegers, Integers);

TYPED_TEST(ReduceIntegers, WrapAround) {
  using Limits = std::numeric_limits<TypeParam>;
  EXPECT_EQ(this->combined(ReduceOp::kSum, Limits::max(), 1), Limits::min());
  EXPECT_EQ(this->combined(ReduceOp::kProduct, Limits::max(), 2), -2);
}

template <typename T>
class ReduceFloats : public Reduce<T> {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ReduceFloats, Floats);

TYPED_TEST(ReduceFloats, KeepANaNFromEitherSide) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
    EXPECT_TRUE(std::isnan(this->combined(op, nan, 1))) << to_string(op);
    EXPECT_TRUE(std::isnan(this->combined(op, 1, nan))) << to_string(op);
  }
}

}  // namespace
}  // namespace muster::collective
