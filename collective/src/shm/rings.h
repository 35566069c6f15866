// The staging rings of the ranks on a host. Each rank writes to its own and reads the others'. A
// position counts the bytes of the stream that went through; all ranks reserve the same bytes in
// the same order, and so know each other's positions without asking.
//
//   const std::uint64_t cell = rings.reserve(bytes);      // on every rank alike
//   if (!rings.await_room(cell + bytes)) ...              // who writes
//   copy(rings.at(self, cell), ...);
//   publish(board.staged, cell + bytes);
//   ...                                                   // who reads waits for `staged`
//   rings.consume(cell + bytes);                          // every rank, once it is done with it
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/board.h"
#include "shm/layout.h"
#include "shm/waiter.h"

namespace muster::collective::shm {

class Rings {
 public:
  Rings(std::byte* base, const Layout& layout, int self, Waiter& waiter);

  Board& board(int rank) { return *reinterpret_cast<Board*>(base_ + board_offset(rank)); }
  std::byte* at(int rank, std::uint64_t position) {
    return base_ + cells_ + static_cast<std::uint64_t>(rank) * kRingBytes + position % kRingBytes;
  }

  /// The next `bytes` of the stream, at most half a ring, which lie in one piece; aligned to 64.
  std::uint64_t reserve(std::uint64_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    const std::uint64_t left = kRingBytes - head_ % kRingBytes;
    if (left < bytes) head_ += left;
    const std::uint64_t position = head_;
    head_ += bytes;
    return position;
  }

  /// Waits until all have read what lies a ring before `end`. False: the world has failed.
  bool await_room(std::uint64_t end) { return end <= free_until_ || await_readers(end); }

  /// This rank has read all that the others have staged up to `end`.
  void consume(std::uint64_t end) { waiter_.publish(board(self_).consumed.value, end); }

 private:
  static std::uint64_t board_offset(int rank) {
    return static_cast<std::uint64_t>(rank) * kBoardBytes;
  }
  bool await_readers(std::uint64_t end);

  std::byte* base_;
  std::uint64_t cells_;
  int ranks_;
  int self_;
  Waiter& waiter_;
  std::uint64_t head_ = 0;
  std::uint64_t free_until_ = kRingBytes;
};

}  // namespace muster::collective::shm
