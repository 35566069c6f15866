#include "shm/rings.h"

#include <algorithm>

namespace muster::collective::shm {

Rings::Rings(std::byte* base, const Layout& layout, int self, Waiter& waiter)
    : base_(base), cells_(layout.cells), ranks_(layout.ranks), self_(self), waiter_(waiter) {}

bool Rings::await_readers(std::uint64_t end) {
  std::uint64_t slowest = head_;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == self_) continue;
    Board& theirs = board(rank);
    if (!waiter_.reach(theirs, theirs.consumed.value, end - kRingBytes)) return false;
    slowest = std::min(slowest, theirs.consumed.value.load(std::memory_order_acquire));
  }
  free_until_ = slowest + kRingBytes;
  return true;
}

}  // namespace muster::collective::shm
