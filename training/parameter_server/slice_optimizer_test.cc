#include "parameter_server/slice_optimizer.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::parameter_server {
namespace {

// Two steps from (1, -2) against the gradients (0.5, 1) and (0.25, -1), computed by hand. The
// numbers of SGD are exact in binary.
struct Row {
  Optimizer optimizer;
  std::vector<float> first;
  std::vector<float> second;
};

class SliceOptimizerTest : public ::testing::TestWithParam<Row> {};

TEST_P(SliceOptimizerTest, TakesTheStepsOfTheTextbook) {
  SliceOptimizer optimizer(GetParam().optimizer, 2);
  std::vector<float> values = {1, -2};
  optimizer.step(values, std::vector<float>{0.5F, 1});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(values[i], GetParam().first[i]) << i;
  optimizer.step(values, std::vector<float>{0.25F, -1});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(values[i], GetParam().second[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(
    All, SliceOptimizerTest,
    ::testing::Values(
        Row{Sgd{.learning_rate = 0.5}, {0.75F, -2.5F}, {0.625F, -2}},
        // Velocities (0.5, 1), then (0.5, -0.5).
        Row{Sgd{.learning_rate = 0.5, .momentum = 0.5}, {0.75F, -2.5F}, {0.5F, -2.25F}},
        // Directions (0.75, 1.5), then (0.25 + 0.25, -1 - 0.25).
        Row{Sgd{.learning_rate = 0.5, .momentum = 0.5, .nesterov = true},
            {0.625F, -2.75F},
            {0.375F, -2.125F}},
        // The first step is the learning rate, against the sign. Then, with b1 = 0.5 and b2 = 0.75:
        // means m = (0.25, -0.25) / 0.75, v = (0.0625, 0.4375) / 0.4375,
        // steps 0.125 * m / sqrt(v).
        Row{Adam{.learning_rate = 0.125, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 1e-12},
            {0.875F, -2.125F},
            {0.7647604F, -2.0833333F}}));

TEST(OptimizerCheck, NamesEveryInvalidValue) {
  EXPECT_TRUE(check(Sgd{}));
  EXPECT_TRUE(check(Adam{}));
  EXPECT_EQ(check(Sgd{.learning_rate = 0, .momentum = 1}).error().message,
            "the learning rate is 0, not above 0; the momentum is 1, not at least 0 and below 1");
  EXPECT_EQ(check(Sgd{.nesterov = true}).error().message,
            "Nesterov's step requires a momentum above 0");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(check(Adam{.learning_rate = nan, .beta2 = -0.5, .epsilon = 0}).error().message,
            "the learning rate is nan, not above 0; beta2 is -0.5, not at least 0 and below 1; "
            "epsilon is 0, not above 0");
}

TEST(OptimizerText, DescribesAllSettings) {
  EXPECT_EQ(to_string(Sgd{.learning_rate = 0.1}), "sgd, learning rate 0.1");
  EXPECT_EQ(to_string(Sgd{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}),
            "sgd, learning rate 0.1, momentum 0.9 (Nesterov)");
  EXPECT_EQ(to_string(Adam{}), "adam, learning rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-08");
}

}  // namespace
}  // namespace muster::parameter_server
