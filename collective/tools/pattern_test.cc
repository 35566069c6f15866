#include "pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::collective::bench {
namespace {

TEST(Pattern, OfEveryTypeIsRecognised) {
  for (int number = 1; number <= 13; ++number) {
    const auto type = static_cast<DataType>(number);
    for (const std::uint64_t count : {0, 1, 2, 3, 4, 1000}) {
      std::vector<std::byte> data(count * size_of(type));
      fill(data.data(), count, type, 5, 7);
      EXPECT_TRUE(is_pattern(data.data(), count, type, 5, 7)) << to_string(type) << " " << count;
      if (count < 3 || type == DataType::kBool) continue;
      EXPECT_FALSE(is_pattern(data.data(), count, type, 6, 7)) << to_string(type) << " " << count;
    }
  }
}

TEST(Pattern, OneWrongByteIsDetected) {
  std::vector<float> data(1000);
  auto* const bytes = reinterpret_cast<std::byte*>(data.data());
  fill(bytes, data.size(), DataType::kFloat32, 0);
  for (const std::size_t place : {0, 2, 3, 500, 999}) {
    const float right = data[place];
    data[place] = 3;
    EXPECT_FALSE(is_pattern(bytes, data.size(), DataType::kFloat32, 0)) << place;
    data[place] = right;
  }
}

TEST(Pattern, ReducedIsRecognised) {
  // Element i of rank r is 2 if r + i is a multiple of 3, else 1.
  std::vector<float> sums(99);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = i % 3 == 0 ? 6 : 5;
  const auto* const bytes = reinterpret_cast<const std::byte*>(sums.data());
  EXPECT_TRUE(is_reduced(bytes, sums.size(), DataType::kFloat32, ReduceOp::kSum, 4));
  EXPECT_FALSE(is_reduced(bytes, sums.size(), DataType::kFloat32, ReduceOp::kMax, 4));
  EXPECT_FALSE(is_reduced(bytes, sums.size(), DataType::kFloat32, ReduceOp::kSum, 4, 1));
}

}  // namespace
}  // namespace muster::collective::bench
