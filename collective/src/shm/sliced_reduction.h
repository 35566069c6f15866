// The reduction of large buffers among the ranks of a host: a reduce-scatter and an all-gather,
// chunk by chunk through the rings. Of every chunk each rank
//
//   stages    what the others reduce of its input, which is all but its own slice,
//   reduces   its own slice, from its input and what the others have staged, and shows the result,
//   gathers   the other slices from where they are shown.
//
// Three chunks are on their way at a time, one in each step, so that nobody waits for what another
// has yet to do. Every rank takes the steps of all rounds in the same order.
//
// Each step returns false once the world has failed. Thread-safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"
#include "shm/pieces.h"
#include "shm/rings.h"
#include "shm/slices.h"
#include "shm/waiter.h"

namespace muster::collective::shm {

/// What is reduced, and how. `receiver`: the one rank that needs the result, or kEveryone.
struct SlicedTask {
  static constexpr int kEveryone = -1;

  Pieces pieces;
  const Kernel& kernel;
  Slices slices;
  Stores cell_stores;
  Stores out_stores;
  int receiver = kEveryone;
};

class SlicedReduction {
 public:
  SlicedReduction(const SlicedTask& task, Rings& rings, Waiter& waiter, int self, int size);

  bool stage(std::uint64_t round);
  bool reduce(std::uint64_t round);
  bool gather(std::uint64_t round);

 private:
  // Where a chunk lies in the stream of every rank.
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
  std::vector<const std::byte*> inputs_;  // by rank: what the kernel reads next
};

}  // namespace muster::collective::shm
