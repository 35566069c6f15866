// The reduction of large buffers among the ranks of a host: a reduce-scatter and an all-gather,
// chunk by chunk through the rings. For every chunk each rank
//
//   stages    the part of its input that other ranks reduce, which is all but its own slice,
//   reduces   its own slice, from its input and the staged inputs, and publishes the result,
//   gathers   the other slices from the ranks that publish them.
//
// Three chunks are in progress at a time, one in each step, so that no rank waits for work that
// another rank has not done yet. Every rank takes the steps of all rounds in the same order.
//
// Thread-safety: one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"
#include "shm/rings.h"

namespace muster::collective::shm {

/// The division of a reduction: rounds of one chunk each, and one slice of each round for every
/// rank.
class Slices {
 public:
  /// The buffer in chunks of `chunk` elements, each divided evenly.
  static Slices of_chunks(std::uint64_t count, std::uint64_t chunk, int ranks);

  std::uint64_t rounds() const { return (count_ + chunk_ - 1) / chunk_; }

  /// Elements in all.
  std::uint64_t count() const { return count_; }

  /// The numbers of elements: in a round, in one rank's slice, and in the longest slice.
  std::uint64_t count(std::uint64_t round) const {
    return std::min(chunk_, count_ - round * chunk_);
  }
  std::uint64_t length(std::uint64_t round, int rank) const {
    return offset(round, rank + 1) - offset(round, rank);
  }
  std::uint64_t longest(std::uint64_t round) const { return length(round, 0); }

  /// The number of elements before a rank's slice, in steps of 64, so that slices do not share
  /// cache lines.
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

inline bool is_in_place(Pieces pieces) {
  return std::ranges::all_of(pieces, [](const Piece& piece) { return piece.in == piece.out; });
}

/// A position in a list of tensors, which it treats as if they were contiguous.
class PieceCursor {
 public:
  PieceCursor(Pieces pieces, std::size_t element_bytes)
      : pieces_(pieces), element_bytes_(element_bytes) {}

  /// Calls `use(in, out, count)` for each run of the next `count` elements within one tensor.
  template <typename Use>
  void take(std::uint64_t count, Use use) {
    while (count > 0) {
      const Piece& piece = pieces_[index_];
      const std::uint64_t run = std::min(count, piece.count - done_);
      if (run > 0) {
        const std::uint64_t offset = done_ * element_bytes_;
        use(piece.in + offset, piece.out + offset, run);
      }
      advance(run);
      count -= run;
    }
  }

  void skip(std::uint64_t count) {
    take(count, [](const std::byte*, std::byte*, std::uint64_t) {});
  }

 private:
  void advance(std::uint64_t run) {
    done_ += run;
    if (done_ == pieces_[index_].count) {
      ++index_;
      done_ = 0;
    }
  }

  Pieces pieces_;
  std::size_t element_bytes_;
  std::size_t index_ = 0;
  std::uint64_t done_ = 0;
};

/// The arguments of a reduction. `receiver`: the only rank that needs the result, or kEveryone.
struct SlicedTask {
  static constexpr int kEveryone = -1;

  Pieces pieces;
  const Kernel& kernel;
  Slices slices;
  Stores cell_stores;
  Stores out_stores;
  int receiver = kEveryone;
};

/// Each step returns false once the world has failed.
class SlicedReduction {
 public:
  SlicedReduction(const SlicedTask& task, Rings& rings, Waiter& waiter, int self, int size);

  bool stage(std::uint64_t round);
  bool reduce(std::uint64_t round);
  bool gather(std::uint64_t round);

 private:
  // The positions of a chunk in the stream of every rank.
  struct Cells {
    std::uint64_t inputs;  // the whole chunk, every slice at its place
    std::uint64_t inputs_end;
    std::uint64_t result;  // of one slice
    std::uint64_t result_end;
  };

  Cells& cells(std::uint64_t round) { return cells_[round % cells_.size()]; }
  bool receives() const {
    return task_.receiver == SlicedTask::kEveryone || task_.receiver == self_;
  }
  void reduce_run(const std::byte* in, std::byte* out, std::byte* result, std::uint64_t run);

  const SlicedTask& task_;
  Rings& rings_;
  Waiter& waiter_;
  int self_;
  int size_;
  std::size_t element_;
  PieceCursor staging_;
  PieceCursor reducing_;
  PieceCursor gathering_;
  std::array<Cells, 4> cells_ = {};
  std::vector<const std::byte*> inputs_;  // by rank: the next inputs of the kernel
};

}  // namespace muster::collective::shm
