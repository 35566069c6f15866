// The images from which a rank learns, and the random numbers that order them.
//
// In each epoch all ranks shuffle the whole training set with the same seed. Rank r of n takes the
// images at r, r + n, r + 2n, ... of that order. Each image belongs to exactly one rank, without
// communication.
//
// All ranks make the same number of steps; otherwise a rank would wait for gradients for ever.
// Batches are therefore always full: a share that ends within its last batch continues with its
// beginning.
//
// Pure. Thread-safety: none needed, since each rank has its own.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace muster::digits {

/// Random numbers that are equal on every platform. The standard fixes the sequence of the engine
/// but not the results of its distributions, so these are implemented here.
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

  /// Uniform in [0, bound), without bias: values of the incomplete last round are rejected.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t rest = (UINT64_MAX % bound + 1) % bound;
    std::uint64_t value = engine_();
    while (value > UINT64_MAX - rest) value = engine_();
    return value % bound;
  }

 private:
  std::mt19937_64 engine_;
};

/// 0 .. count - 1 in an order that depends on `seed` and `epoch` alone (R. Fisher, F. Yates, 1938).
std::vector<std::uint32_t> permutation(std::size_t count, std::uint64_t seed, int epoch);

class Shard {
 public:
  /// `images` is the size of the whole training set, at least one for each rank.
  Shard(std::size_t images, int rank, int size, std::size_t batch);

  /// The number of images of this rank. Shares differ by one at most and add up to all images.
  std::size_t size() const { return share_of(rank_); }

  /// The number of batches in an epoch, equal on all ranks.
  std::size_t steps() const;

  /// The images of one step of an epoch. `order` is the permutation of that epoch.
  std::vector<std::uint32_t> batch(const std::vector<std::uint32_t>& order, std::size_t step) const;

 private:
  std::size_t share_of(std::size_t rank) const;

  std::size_t images_;
  std::size_t rank_;
  std::size_t ranks_;
  std::size_t batch_;
};

}  // namespace muster::digits
