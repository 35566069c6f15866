#include "random.h"

#include <gtest/gtest.h>

#include <array>

namespace muster::digits {
namespace {

constexpr int kDraws = 100'000;

TEST(Random, IsUniform) {
  Random random(1);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
}

TEST(Random, IsNormal) {
  Random random(1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.03);
}

TEST(Random, DrawsEachNumberBelowABoundAboutAsOften) {
  Random random(1);
  std::array<int, 7> counts = {};
  for (int i = 0; i < kDraws; ++i) ++counts[random.below(counts.size())];
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 7.0, 500);
}

TEST(Random, IsTheSameForTheSameSeedOnly) {
  Random a(1);
  Random b(1);
  Random c(2);
  const double value = a.uniform();
  EXPECT_EQ(value, b.uniform());
  EXPECT_NE(value, c.uniform());
}

}  // namespace
}  // namespace muster::digits
