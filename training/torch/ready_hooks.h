// Tells when the gradient of a parameter has been computed: a hook behind the node of the autograd
// graph that adds to grad().
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace muster::training {

class ReadyHooks {
 public:
  ReadyHooks() = default;
  ~ReadyHooks();
  ReadyHooks(const ReadyHooks&) = delete;
  ReadyHooks& operator=(const ReadyHooks&) = delete;

  /// Calls `then` after each backward pass that reaches `parameter`, a leaf that requires a
  /// gradient, on the thread that computed it.
  void add(const torch::Tensor& parameter, std::function<void()> then);

 private:
  struct Hook {
    std::shared_ptr<torch::autograd::Node> node;  // the parameter itself holds it only weakly
    std::uintptr_t key;
  };

  std::vector<Hook> hooks_;
};

}  // namespace muster::training
