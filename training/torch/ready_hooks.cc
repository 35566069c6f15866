#include "ready_hooks.h"

#include <utility>

namespace muster::training {
namespace {

class PostHook : public torch::autograd::FunctionPostHook {
 public:
  explicit PostHook(std::function<void()> then) : then_(std::move(then)) {}

  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& outputs,
      const torch::autograd::variable_list& /*inputs*/) override {
    then_();
    return outputs;
  }

 private:
  std::function<void()> then_;
};

}  // namespace

void ReadyHooks::add(const torch::Tensor& parameter, std::function<void()> then) {
  std::shared_ptr<torch::autograd::Node> node = torch::autograd::impl::grad_accumulator(parameter);
  const std::uintptr_t key = node->add_post_hook(std::make_unique<PostHook>(std::move(then)));
  hooks_.push_back({std::move(node), key});
}

ReadyHooks::~ReadyHooks() {
  for (const Hook& hook : hooks_) hook.node->del_post_hook(hook.key);
}

}  // namespace muster::training
