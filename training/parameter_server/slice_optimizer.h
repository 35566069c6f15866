// The state of an optimizer for one slice, and its step there: pure arithmetic in float32, as in the
// frameworks. optimizer.h names the sources of the algorithms.
//
// Thread-safety: none; the caller takes one step at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/parameter_server/optimizer.h"

namespace muster::parameter_server {

class SliceOptimizer {
 public:
  /// For `count` elements, with an empty state. The optimizer has passed check().
  SliceOptimizer(const Optimizer& optimizer, std::size_t count);

  /// One step of `values` against `gradient`; both have `count` elements.
  void step(std::span<float> values, std::span<const float> gradient);

 private:
  void take(const Sgd& sgd, std::span<float> values, std::span<const float> gradient);
  void take(const Adam& adam, std::span<float> values, std::span<const float> gradient);

  Optimizer optimizer_;
  std::uint64_t steps_ = 0;
  std::vector<float> first_;   // velocity, or Adam's mean of gradients; empty if not needed
  std::vector<float> second_;  // Adam's mean of squares
};

}  // namespace muster::parameter_server
