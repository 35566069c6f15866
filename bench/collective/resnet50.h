// The lengths of the gradients of ResNet-50 (He et al., "Deep residual learning for image
// recognition", 2015).
#pragma once

#include <cstdint>
#include <vector>

namespace bench {

/// The number of elements of each of the 148 largest tensors of the network without its classifier,
/// in the order of the forward pass: 94 MB of float32.
std::vector<std::uint64_t> resnet50_tensors();

}  // namespace bench
