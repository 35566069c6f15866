#include "shard_state.h"

#include <memory>
#include <type_traits>

namespace muster::training {
namespace {

using torch::optim::Adam;
using torch::optim::AdamParamState;
using torch::optim::AdamW;
using torch::optim::AdamWParamState;
using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using torch::optim::RMSprop;
using torch::optim::RMSpropParamState;
using torch::optim::SGD;
using torch::optim::SGDParamState;

std::string state_key(const torch::Tensor& tensor) {
  return c10::guts::to_string(tensor.unsafeGetTensorImpl());
}

// Calls each(name, tensor) for each tensor of a state, and step(number).
template <typename State, typename Each, typename Step>
void visit_values(State& state, const Each& each, const Step& step) {
  if constexpr (std::is_same_v<std::remove_const_t<State>, SGDParamState>) {
    each("momentum_buffer", state.momentum_buffer());
  } else if constexpr (std::is_same_v<std::remove_const_t<State>, RMSpropParamState>) {
    step(state.step());
    each("square_avg", state.square_avg());
    each("momentum_buffer", state.momentum_buffer());
    each("grad_avg", state.grad_avg());
  } else {
    step(state.step());
    each("exp_avg", state.exp_avg());
    each("exp_avg_sq", state.exp_avg_sq());
    each("max_exp_avg_sq", state.max_exp_avg_sq());
  }
}

template <typename State>
bool read_state(const OptimizerParamState& from, TensorState& state) {
  const auto* const found = dynamic_cast<const State*>(&from);
  if (found == nullptr) return false;
  state.exists = true;
  visit_values(
      *found,
      [&](const char* name, const torch::Tensor& value) {
        if (value.defined()) state.values.emplace_back(name, value);
      },
      [&](std::int64_t step) { state.step = step; });
  return true;
}

template <typename Kind, typename State>
bool write_state(Optimizer& optimizer, const std::string& key, const TensorState& state) {
  if (dynamic_cast<Kind*>(&optimizer) == nullptr) return false;
  auto made = std::make_unique<State>();
  visit_values(
      *made,
      [&](const std::string& name, torch::Tensor& value) {
        for (const auto& [given, values] : state.values) {
          if (given == name) value = values;
        }
      },
      [&](std::int64_t& step) { step = state.step; });
  optimizer.state()[key] = std::move(made);
  return true;
}

}  // namespace

bool is_divisible(const Optimizer& optimizer) {
  return dynamic_cast<const SGD*>(&optimizer) != nullptr ||
         dynamic_cast<const Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const RMSprop*>(&optimizer) != nullptr;
}

TensorState state_of(const Optimizer& optimizer, const torch::Tensor& tensor) {
  TensorState state;
  const auto found = optimizer.state().find(state_key(tensor));
  if (found == optimizer.state().end()) return state;
  const OptimizerParamState& from = *found->second;
  if (!read_state<SGDParamState>(from, state) && !read_state<AdamParamState>(from, state) &&
      !read_state<AdamWParamState>(from, state)) {
    read_state<RMSpropParamState>(from, state);
  }
  return state;
}

void set_state(Optimizer& optimizer, const torch::Tensor& tensor, const TensorState& state) {
  const std::string key = state_key(tensor);
  optimizer.state().erase(key);
  if (!state.exists) return;
  if (!write_state<SGD, SGDParamState>(optimizer, key, state) &&
      !write_state<Adam, AdamParamState>(optimizer, key, state) &&
      !write_state<AdamW, AdamWParamState>(optimizer, key, state)) {
    write_state<RMSprop, RMSpropParamState>(optimizer, key, state);
  }
}

}  // namespace muster::training
