// The state that an optimizer of libtorch keeps for one tensor, as values: so that the parts of
// one number of ranks become those of another.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::training {

struct TensorState {
  bool exists = false;
  std::int64_t step = 0;
  /// By name: tensors with the elements of the parameter.
  std::vector<std::pair<std::string, torch::Tensor>> values;
};

/// Whether the optimizer is SGD, Adam, AdamW or RMSprop: they treat each element by itself.
bool is_divisible(const torch::optim::Optimizer& optimizer);

TensorState state_of(const torch::optim::Optimizer& optimizer, const torch::Tensor& tensor);

/// Replaces the state. Unknown names are ignored. Requires is_divisible().
void set_state(torch::optim::Optimizer& optimizer, const torch::Tensor& tensor,
               const TensorState& state);

}  // namespace muster::training
