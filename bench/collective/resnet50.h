// The gradients of ResNet-50 (He et al., "Deep residual learning for image recognition", 2015), as
// far as their lengths go.
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// Elements of each of the 148 largest tensors of the network without its classifier, in the order
/// in which the forward pass meets them: 94 MB of float32.
std::vector<std::uint64_t> resnet50_tensors();

}  // namespace bench
