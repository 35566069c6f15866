// Which images a rank learns from. In each epoch all ranks shuffle the whole training set by the
// same seed, and rank r of n takes the images at r, r + n, r + 2n, ... of that order: every image
// is some rank's, none is two ranks', and no rank has to tell another.
//
// All ranks make the same number of steps, or one would wait for the others' gradients for ever. So
// batches are always full: a share that ends within its last batch goes on with its own beginning.
//
// Pure. Thread-safety: none needed, each rank has its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::digits {

/// 0 .. count - 1 in an order that depends on `seed` and `epoch` alone (R. Fisher, F. Yates, 1938).
std::vector<std::uint32_t> permutation(std::size_t count, std::uint64_t seed, int epoch);

class Shard {
 public:
  /// `images` is the size of the whole training set, at least one for each rank.
  Shard(std::size_t images, int rank, int size, std::size_t batch);

  /// How many images this rank has; shares differ by one at most and add up to all images.
  std::size_t size() const { return share_of(rank_); }

  /// Batches in an epoch, the same on all ranks.
  std::size_t steps() const;

  /// The images of one step of the epoch whose permutation this is.
  std::vector<std::uint32_t> batch(const std::vector<std::uint32_t>& order, std::size_t step) const;

 private:
  std::size_t share_of(std::size_t rank) const;

  std::size_t images_;
  std::size_t rank_;
  std::size_t ranks_;
  std::size_t batch_;
};

}  // namespace muster::digits
