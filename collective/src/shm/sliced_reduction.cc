#include "shm/sliced_reduction.h"

namespace muster::collective::shm {

SlicedReduction::SlicedReduction(const SlicedTask& task, Rings& rings, Waiter& waiter, int self,
                                 int size)
    : task_(task),
      rings_(rings),
      waiter_(waiter),
      self_(self),
      size_(size),
      element_(task.kernel.bytes_in()),
      staging_(task.pieces, element_),
      reducing_(task.pieces, element_),
      gathering_(task.pieces, element_),
      inputs_(static_cast<std::size_t>(size)) {}

bool SlicedReduction::stage(std::uint64_t round) {
  const Slices& slices = task_.slices;
  Cells& at = cells(round);
  at.inputs = rings_.reserve(slices.count(round) * element_);
  at.inputs_end = at.inputs + slices.count(round) * element_;
  at.result = rings_.reserve(slices.longest(round) * element_);
  at.result_end = at.result + slices.longest(round) * element_;
  if (!rings_.await_room(at.result_end)) return false;
  std::byte* to = rings_.at(self_, at.inputs);
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint64_t length = slices.length(round, rank);
    if (rank == self_) {
      staging_.skip(length);
      to += length * element_;
      continue;
    }
    staging_.take(length, [&](const std::byte* in, std::byte*, std::uint64_t run) {
      collective::copy(to, in, run * element_, task_.cell_stores);
      to += run * element_;
    });
  }
  waiter_.publish(rings_.board(self_).staged.value, at.inputs_end);
  return true;
}

bool SlicedReduction::reduce(std::uint64_t round) {
  const Slices& slices = task_.slices;
  const Cells& at = cells(round);
  const std::uint64_t before = slices.offset(round, self_);
  const std::uint64_t length = slices.length(round, self_);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == self_) continue;
    Board& theirs = rings_.board(rank);
    if (!waiter_.reach(theirs, theirs.staged.value, at.inputs_end)) return false;
    inputs_[static_cast<std::size_t>(rank)] = rings_.at(rank, at.inputs) + before * element_;
  }
  std::byte* result = rings_.at(self_, at.result);
  reducing_.skip(before);
  reducing_.take(length, [&](const std::byte* in, std::byte* out, std::uint64_t run) {
    reduce_run(in, out, result, run);
    result += run * element_;
  });
  reducing_.skip(slices.count(round) - before - length);
  waiter_.publish(rings_.board(self_).reduced.value, at.result_end);
  return true;
}

// The result goes to its cell and to the output at once, except for outputs that bypass the caches:
// other ranks are about to read the cell.
void SlicedReduction::reduce_run(const std::byte* in, std::byte* out, std::byte* result,
                                 std::uint64_t run) {
  inputs_[static_cast<std::size_t>(self_)] = in;
  const bool streams = task_.out_stores == Stores::kStreaming;
  const std::array<std::byte*, 2> places = {result, out};
  task_.kernel.to_all(inputs_.data(), size_, places.data(), receives() && !streams ? 2 : 1, run);
  if (receives() && streams) collective::copy(out, result, run * element_, Stores::kStreaming);
  for (const std::byte*& input : inputs_) input += run * element_;
}

bool SlicedReduction::gather(std::uint64_t round) {
  const Cells& at = cells(round);
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint64_t length = task_.slices.length(round, rank);
    if (rank == self_ || !receives()) {
      gathering_.skip(length);
      continue;
    }
    Board& theirs = rings_.board(rank);
    if (!waiter_.reach(theirs, theirs.reduced.value, at.result_end)) return false;
    const std::byte* from = rings_.at(rank, at.result);
    gathering_.take(length, [&](const std::byte*, std::byte* out, std::uint64_t run) {
      collective::copy(out, from, run * element_, task_.out_stores);
      from += run * element_;
    });
  }
  rings_.consume(at.result_end);
  return true;
}

}  // namespace muster::collective::shm
