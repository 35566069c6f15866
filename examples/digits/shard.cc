#include "shard.h"

#include <numeric>
#include <utility>

namespace muster::digits {

std::vector<std::uint32_t> permutation(std::size_t count, std::uint64_t seed, int epoch) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  // The odd constant (2^64 divided by the golden ratio) distinguishes seed 1, epoch 2 from seed 2,
  // epoch 1.
  Random random(seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(epoch + 1));
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

Shard::Shard(std::size_t images, int rank, int size, std::size_t batch)
    : images_(images),
      rank_(static_cast<std::size_t>(rank)),
      ranks_(static_cast<std::size_t>(size)),
      batch_(batch) {}

std::size_t Shard::share_of(std::size_t rank) const {
  return images_ / ranks_ + (rank < images_ % ranks_ ? 1 : 0);
}

std::size_t Shard::steps() const {
  const std::size_t largest = share_of(0);
  return (largest + batch_ - 1) / batch_;
}

std::vector<std::uint32_t> Shard::batch(const std::vector<std::uint32_t>& order,
                                        std::size_t step) const {
  std::vector<std::uint32_t> images;
  images.reserve(batch_);
  for (std::size_t i = 0; i < batch_; ++i) {
    images.push_back(order[rank_ + ranks_ * ((step * batch_ + i) % size())]);
  }
  return images;
}

}  // namespace muster::digits
