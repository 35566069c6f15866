// How the elements of a reduction are cut: in rounds, and each round in a slice for every rank.
//
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::collective::shm {

class Slices {
 public:
  /// The buffer in chunks of `chunk` elements, each cut evenly.
  static Slices of_chunks(std::uint64_t count, std::uint64_t chunk, int ranks);

  std::uint64_t rounds() const { return (count_ + chunk_ - 1) / chunk_; }

  /// Elements in all.
  std::uint64_t count() const { return count_; }

  /// Elements of a round, those of one rank, and how many of the others' come before.
  std::uint64_t count(std::uint64_t round) const {
    return std::min(chunk_, count_ - round * chunk_);
  }
  std::uint64_t length(std::uint64_t round, int rank) const {
    return offset(round, rank + 1) - offset(round, rank);
  }
  std::uint64_t longest(std::uint64_t round) const { return length(round, 0); }

  /// In steps of 64 elements, so that slices do not share cache lines.
  std::uint64_t offset(std::uint64_t round, int rank) const {
    const std::uint64_t all = count(round);
    const std::uint64_t each = (all + ranks_ - 1) / ranks_;
    const std::uint64_t wide = (each + 63) / 64 * 64;
    return std::min(all, wide * static_cast<std::uint64_t>(rank));
  }

 private:
  Slices(std::uint64_t count, std::uint64_t chunk, std::uint64_t ranks)
      : count_(count), chunk_(chunk), ranks_(ranks) {}

  std::uint64_t count_;
  std::uint64_t chunk_;
  std::uint64_t ranks_;
};

inline Slices Slices::of_chunks(std::uint64_t count, std::uint64_t chunk, int ranks) {
  return {count, chunk, static_cast<std::uint64_t>(ranks)};
}

}  // namespace muster::collective::shm
