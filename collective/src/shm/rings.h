// The staging rings of the ranks of a host, and the waiting for values on other ranks' boards.
//
// Thread-safety: one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "call/call.h"
#include "control/monitor.h"
#include "muster/collective/result.h"
#include "shm/layout.h"

namespace muster::collective::shm {

/// A call for messages: "call 3 (barrier)"; "a call" for null.
std::string text_of(const Call* call);

/// Waits for values on other ranks' boards, and wakes ranks that wait for this rank's values. A
/// wait spins for a moment, which suffices for a peer on another core, and then sleeps on a futex.
/// If there are more ranks than processors, it yields the processor at once, since the other rank
/// may need it.
///
/// Publishing is part of the smallest call and must not cost a fence. The sleeping rank pays
/// instead: it announces its sleep, has the kernel run a barrier on every thread of the registered
/// processes (membarrier(2), global expedited), and checks the value again. Then either it sees the
/// new value, or the publisher sees the announcement. On kernels without that call the publisher
/// uses a fence.
class Waiter {
 public:
  /// Returns the error of a wait for the rank of the board `theirs` if that rank has left,
  /// otherwise nothing. `call` is the call that waits, or null.
  using HasLeft = std::function<std::optional<Error>(const Board& theirs, const Call* call)>;

  /// `mine` is this rank's board.
  Waiter(Board& mine, Monitor* monitor, HasLeft has_left);

  /// Whether there are more ranks on the host than processors, and if so, whether there are so many
  /// that yielding the processor to one of them is pointless.
  void set_crowded(bool crowded, bool packed) {
    crowded_ = crowded;
    packed_ = crowded && packed;
  }
  bool crowded() const { return crowded_; }

  /// The call of the following waits, for messages. It must stay valid until the next begin().
  void begin(const Call& call) { call_ = &call; }

  /// Publishes `value` and all earlier writes.
  void publish(std::atomic<std::uint64_t>& signal, std::uint64_t value) {
    if (fences_myself_) {
      signal.exchange(value, std::memory_order_seq_cst);
    } else {
      signal.store(value, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    if (mine_.sleepers.load(std::memory_order_relaxed) != 0) wake(signal);
  }

  /// Waits until `signal` on the board `theirs` has reached `target`. False: the world has failed.
  bool reach(Board& theirs, const std::atomic<std::uint64_t>& signal, std::uint64_t target) {
    if (signal.load(std::memory_order_acquire) >= target) return true;
    return reach_slowly(theirs, signal, target);
  }

 private:
  bool reach_slowly(Board& theirs, const std::atomic<std::uint64_t>& signal, std::uint64_t target);
  bool sleep_until(Board& theirs, const std::atomic<std::uint64_t>& signal, std::uint64_t target);
  bool failed() const { return monitor_ != nullptr && monitor_->failed(); }
  static void wake(const std::atomic<std::uint64_t>& signal);

  Board& mine_;
  Monitor* monitor_;
  HasLeft has_left_;
  const Call* call_ = nullptr;
  bool fences_myself_ = true;
  bool crowded_ = false;
  bool packed_ = false;
};

/// The staging rings. Each rank writes to its own ring and reads the rings of the other ranks. A
/// position counts the bytes of the stream so far. All ranks reserve the same bytes in the same
/// order, so that each rank can compute the positions of the others.
///
///   const std::uint64_t cell = rings.reserve(bytes);      // on every rank
///   if (!rings.await_room(cell + bytes)) ...              // the writer
///   copy(rings.at(self, cell), ...);
///   publish(board.staged, cell + bytes);
///   ...                                                   // readers wait for `staged`
///   rings.consume(cell + bytes);                          // every rank, after its last read
class Rings {
 public:
  /// `memory` contains `base`; null: all of it is available already (in tests).
  Rings(std::byte* base, const Layout& layout, int self, Waiter& waiter, const SharedMemory* memory,
        Monitor* monitor);

  Board& board(int rank) { return *reinterpret_cast<Board*>(base_ + board_offset(rank)); }
  std::byte* at(int rank, std::uint64_t position) {
    return base_ + cells_ + static_cast<std::uint64_t>(rank) * kRingBytes + position % kRingBytes;
  }

  /// The next contiguous `bytes` of the stream, at most half a ring, aligned to 64.
  std::uint64_t reserve(std::uint64_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    const std::uint64_t left = kRingBytes - head_ % kRingBytes;
    if (left < bytes) head_ += left;
    const std::uint64_t position = head_;
    head_ += bytes;
    return position;
  }

  /// Waits until all ranks have read the ring up to one ring size before `end`. False: the world
  /// has failed.
  ///
  /// The ring occupies memory only as far as it has been used: in a large world with small calls,
  /// whole rings would be most of what a rank occupies. The memory is reserved before it is written,
  /// since a write to memory that is not available would kill the process with SIGBUS.
  bool await_room(std::uint64_t end) { return end <= free_until_ || find_room(end); }

  /// Publishes that this rank has read all other rings up to `end`.
  void consume(std::uint64_t end) { waiter_.publish(board(self_).consumed.value, end); }

 private:
  static std::uint64_t board_offset(int rank) {
    return static_cast<std::uint64_t>(rank) * kBoardBytes;
  }
  bool find_room(std::uint64_t end);
  bool occupy(std::uint64_t bytes);
  bool await_readers(std::uint64_t end);

  std::byte* base_;
  std::uint64_t cells_;
  int ranks_;
  int self_;
  Waiter& waiter_;
  const SharedMemory* memory_;
  Monitor* monitor_;
  std::uint64_t head_ = 0;
  std::uint64_t occupied_;    // bytes of this rank's ring that are reserved
  std::uint64_t free_until_;  // never beyond occupied_ until all of the ring is reserved
};

}  // namespace muster::collective::shm
