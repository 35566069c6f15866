#include "training.h"

#include <algorithm>
#include <cmath>

namespace muster::collective::model {
namespace {

// Sizes are rounded up, so that few of them have to be simulated.
constexpr std::uint64_t kGrain = std::uint64_t{512} << 10;

std::uint64_t whole_grains(double bytes) {
  return (static_cast<std::uint64_t>(bytes) + kGrain - 1) / kGrain * kGrain;
}

}  // namespace

double efficiency(const Training& training, Hierarchy& hierarchy, std::uint64_t fusion_bytes) {
  const double computing = training.step_ms * 1000;
  const double forward = computing / 3;
  const double interval = (computing - forward) / training.tensors;
  const double tensor_bytes = training.parameters * sizeof(float) / training.tensors;
  const int most = std::max(1, static_cast<int>(static_cast<double>(fusion_bytes) / tensor_bytes));
  double now = forward;
  for (int reduced = 0; reduced < training.tensors;) {
    const double next_is_ready = forward + (reduced + 1) * interval;
    now = std::max(now, next_is_ready);
    const int ready =
        std::min(training.tensors, static_cast<int>(std::floor((now - forward) / interval + 1e-9)));
    const int count = std::clamp(ready - reduced, 1, most);
    now += hierarchy.time_of(whole_grains(count * tensor_bytes));
    reduced += count;
  }
  return computing / std::max(now, computing);
}

}  // namespace muster::collective::model
