// Random numbers that are the same everywhere. The standard fixes the engine's sequence to the bit,
// but not what its distributions make of it, so those are written out here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace muster::digits {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in [0, 1), with all 53 bits of a double.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  /// Normal with mean 0 and deviation 1 (G. Box, M. Muller, 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  /// Uniform in [0, bound), without bias: values of an incomplete last round are thrown again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t rest = (UINT64_MAX % bound + 1) % bound;
    std::uint64_t value = engine_();
    while (value > UINT64_MAX - rest) value = engine_();
    return value % bound;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster::digits
