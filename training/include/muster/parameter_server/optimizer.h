// The optimizers of parameter servers. Each push is one step of each parameter for which it has a
// gradient; the state of the optimizer stays on the server.
#pragma once

#include <string>
#include <variant>

#include "muster/collective/result.h"

namespace muster::parameter_server {

/// Stochastic gradient descent as in the frameworks: with `momentum` m the velocity becomes
/// m * velocity + gradient, and the step is learning_rate * velocity; with `nesterov` it is
/// learning_rate * (gradient + m * velocity).
struct Sgd {
  double learning_rate = 0.01;
  double momentum = 0;  // 0: without momentum, and without state
  bool nesterov = false;

  bool operator==(const Sgd&) const = default;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", with bias correction.
struct Adam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  bool operator==(const Adam&) const = default;
};

using Optimizer = std::variant<Sgd, Adam>;

/// Errors: kBadArgument, naming every invalid value: a learning rate that is not above 0, a
/// momentum or beta outside of 0 .. 1 (without 1), Nesterov without momentum, an epsilon of 0.
collective::Status check(const Optimizer& optimizer);

/// For messages: "sgd, learning rate 0.1, momentum 0.9".
std::string to_string(const Optimizer& optimizer);

}  // namespace muster::parameter_server
