#include "parameter_server/slice_optimizer.h"

#include <cmath>

namespace muster::parameter_server {
namespace {

void plain_step(float rate, std::span<float> values, std::span<const float> gradient) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= rate * gradient[i];
}

}  // namespace

SliceOptimizer::SliceOptimizer(const Optimizer& optimizer, std::size_t count)
    : optimizer_(optimizer) {
  const auto* const sgd = std::get_if<Sgd>(&optimizer);
  if (sgd == nullptr || sgd->momentum != 0) first_.resize(count);
  if (sgd == nullptr) second_.resize(count);
}

void SliceOptimizer::step(std::span<float> values, std::span<const float> gradient) {
  ++steps_;
  std::visit([&](const auto& optimizer) { take(optimizer, values, gradient); }, optimizer_);
}

void SliceOptimizer::take(const Sgd& sgd, std::span<float> values,
                          std::span<const float> gradient) {
  const auto rate = static_cast<float>(sgd.learning_rate);
  if (first_.empty()) return plain_step(rate, values, gradient);
  const auto momentum = static_cast<float>(sgd.momentum);
  for (std::size_t i = 0; i < values.size(); ++i) {
    first_[i] = momentum * first_[i] + gradient[i];
    const float direction = sgd.nesterov ? gradient[i] + momentum * first_[i] : first_[i];
    values[i] -= rate * direction;
  }
}

void SliceOptimizer::take(const Adam& adam, std::span<float> values,
                          std::span<const float> gradient) {
  // Both means start at 0, which biases them towards 0. Dividing by these shares corrects the bias.
  const auto steps = static_cast<double>(steps_);
  const double first_share = 1 - std::pow(adam.beta1, steps);
  const double second_share = 1 - std::pow(adam.beta2, steps);
  const auto rate = static_cast<float>(adam.learning_rate / first_share);
  const auto scale = static_cast<float>(1 / std::sqrt(second_share));
  const auto beta1 = static_cast<float>(adam.beta1);
  const auto beta2 = static_cast<float>(adam.beta2);
  const auto epsilon = static_cast<float>(adam.epsilon);
  for (std::size_t i = 0; i < values.size(); ++i) {
    first_[i] = beta1 * first_[i] + (1 - beta1) * gradient[i];
    second_[i] = beta2 * second_[i] + (1 - beta2) * gradient[i] * gradient[i];
    values[i] -= rate * first_[i] / (std::sqrt(second_[i]) * scale + epsilon);
  }
}

}  // namespace muster::parameter_server
