#include "network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "shard.h"

namespace muster::digits {
namespace {

constexpr Shape kShape{6, 5, 4};
const std::vector<std::uint8_t> kLabels = {0, 1, 2, 3, 1, 2, 0};

template <typename Scalar>
typename BasicNetwork<Scalar>::Matrix images() {
  typename BasicNetwork<Scalar>::Matrix images(static_cast<Eigen::Index>(kLabels.size()),
                                               kShape.inputs);
  Random random(2);
  for (Eigen::Index i = 0; i < images.size(); ++i) {
    images.data()[i] = static_cast<Scalar>(random.uniform());
  }
  return images;
}

TEST(Network, HasTheGradientOfFiniteDifferences) {
  BasicNetwork<double> network(kShape, 1);
  const auto input = images<double>();
  // Moves the weights away from 0, where most biases would be at the kink of ReLU.
  for (double& weight : network.weights()) weight += 0.01;
  network.learn(input, kLabels);
  const std::vector<double> gradient(network.gradient().begin(), network.gradient().end());

  constexpr double kStep = 1e-6;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& weight = network.weights()[i];
    const double before = weight;
    weight = before + kStep;
    const double above = network.evaluate(input, kLabels).loss;
    weight = before - kStep;
    const double below = network.evaluate(input, kLabels).loss;
    weight = before;
    const double slope = (above - below) / (2 * kStep) / static_cast<double>(kLabels.size());
    ASSERT_NEAR(gradient[i], slope, 1e-7) << "weight " << i;
  }
}

TEST(Network, LearnsItsExamples) {
  Network network(kShape, 1);
  const auto input = images<float>();
  const double before = network.evaluate(input, kLabels).loss;
  for (int step = 0; step < 2000; ++step) {
    network.learn(input, kLabels);
    for (std::size_t i = 0; i < network.weights().size(); ++i) {
      network.weights()[i] -= 0.2F * network.gradient()[i];
    }
  }
  const Score after = network.evaluate(input, kLabels);
  EXPECT_LT(after.loss, before / 100);
  EXPECT_EQ(after.correct, static_cast<int>(kLabels.size()));
}

TEST(Network, LearningDoesNotChangeTheWeights) {
  Network network(kShape, 1);
  const std::vector<float> before(network.weights().begin(), network.weights().end());
  network.learn(images<float>(), kLabels);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), network.weights().begin()));
}

TEST(Network, DependsOnItsSeedOnly) {
  Network network(kShape, 1);
  Network same(kShape, 1);
  Network other(kShape, 2);
  const auto equal = [&](Network& b) {
    return std::equal(network.weights().begin(), network.weights().end(), b.weights().begin());
  };
  EXPECT_TRUE(equal(same));
  EXPECT_FALSE(equal(other));
}

TEST(Network, HasInitialWeightsWithHesVariance) {
  Network network({400, 100, 10}, 1);
  const std::span<float> first = network.weights().first(400 * 100);
  double squares = 0;
  for (const float weight : first) squares += weight * weight;
  EXPECT_NEAR(squares / static_cast<double>(first.size()), 2.0 / 400, 2e-4);
}

TEST(Network, SurvivesOutputsThatOverflowExp) {
  Network network(kShape, 1);
  for (float& weight : network.weights()) weight *= 1e4F;
  EXPECT_TRUE(std::isfinite(network.learn(images<float>(), kLabels).loss));
  for (const float slope : network.gradient()) EXPECT_TRUE(std::isfinite(slope));
}

}  // namespace
}  // namespace muster::digits
