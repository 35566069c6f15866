#include "resnet.h"

#include <array>

#include "images.h"

namespace muster::resnet20 {
namespace {

constexpr int kBlocksPerStage = 3;
constexpr std::array<std::int64_t, 3> kStageChannels = {16, 32, 64};

torch::nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t side,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(from, to, side).stride(stride).padding(side / 2).bias(false));
}

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const std::string& name, std::int64_t from, std::int64_t to, std::int64_t stride,
            const MakeNorm& make_norm)
      : conv1_(register_module("conv1", convolution(from, to, 3, stride))),
        norm1_(add_norm("norm1", name, to, make_norm)),
        conv2_(register_module("conv2", convolution(to, to, 3, 1))),
        norm2_(add_norm("norm2", name, to, make_norm)) {
    if (from == to) return;
    shortcut_ = register_module("shortcut", convolution(from, to, 1, stride));
    shortcut_norm_ = add_norm("shortcut_norm", name, to, make_norm);
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor output = norm1_.forward(conv1_(input)).relu_();
    output = norm2_.forward(conv2_(output));
    output = output + (shortcut_ ? shortcut_norm_.forward(shortcut_(input)) : input);
    return output.relu_();
  }

 private:
  torch::nn::AnyModule add_norm(const std::string& own_name, const std::string& name,
                                std::int64_t features, const MakeNorm& make_norm) {
    torch::nn::AnyModule norm = make_norm(name + "." + own_name, features);
    register_module(own_name, norm.ptr());
    return norm;
  }

  torch::nn::Conv2d conv1_;
  torch::nn::AnyModule norm1_;
  torch::nn::Conv2d conv2_;
  torch::nn::AnyModule norm2_;
  torch::nn::Conv2d shortcut_{nullptr};
  torch::nn::AnyModule shortcut_norm_;
};
TORCH_MODULE(Block);

}  // namespace

torch::nn::AnyModule batch_norm(const std::string& /*name*/, std::int64_t features) {
  return torch::nn::AnyModule(torch::nn::BatchNorm2d(features));
}

ResNet20Impl::ResNet20Impl(const MakeNorm& make_norm) {
  std::int64_t channels = kStageChannels.front();
  first_ = register_module("first", convolution(kChannels, channels, 3, 1));
  first_norm_ = make_norm("first_norm", channels);
  register_module("first_norm", first_norm_.ptr());
  for (const std::int64_t wanted : kStageChannels) {
    for (int i = 0; i < kBlocksPerStage; ++i) {
      const std::string name = "blocks." + std::to_string(blocks_->size());
      blocks_->push_back(Block(name, channels, wanted, wanted == channels ? 1 : 2, make_norm));
      channels = wanted;
    }
  }
  register_module("blocks", blocks_);
  last_ = register_module("last", torch::nn::Linear(channels, kClasses));
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const conv = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

torch::Tensor ResNet20Impl::forward(torch::Tensor images) {
  torch::Tensor output = first_norm_.forward(first_(images)).relu_();
  output = blocks_->forward(output);
  return last_(output.mean({2, 3}));
}

}  // namespace muster::resnet20
