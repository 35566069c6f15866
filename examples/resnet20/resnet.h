// ResNet-20 for images of 32 x 32 pixels (K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning
// for image recognition", CVPR 2016, section 4.2): a convolution, three stages of three blocks with
// 16, 32 and 64 channels, an average over the image, a linear layer. If a stage changes the shape,
// its first short cut is a convolution of 1 x 1 (their option B). 272,474 parameters.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <string>

namespace muster::resnet20 {

/// Creates the normalisation with this name in the model, for `features` channels.
using MakeNorm =
    std::function<torch::nn::AnyModule(const std::string& name, std::int64_t features)>;

/// torch::nn::BatchNorm2d.
torch::nn::AnyModule batch_norm(const std::string& name, std::int64_t features);

class ResNet20Impl : public torch::nn::Module {
 public:
  /// Draws the weights from torch's generator, with He's initialisation for convolutions.
  explicit ResNet20Impl(const MakeNorm& make_norm = batch_norm);

  /// From [batch, 3, 32, 32] to [batch, 10], not normalised.
  torch::Tensor forward(torch::Tensor images);

 private:
  torch::nn::Conv2d first_{nullptr};
  torch::nn::AnyModule first_norm_;
  torch::nn::Sequential blocks_;
  torch::nn::Linear last_{nullptr};
};

TORCH_MODULE(ResNet20);

}  // namespace muster::resnet20
