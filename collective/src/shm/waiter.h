// Waits for values on other ranks' boards, and wakes those who wait for ours: a moment of spinning,
// which is what a peer on another core needs, then sleep on a futex. With more ranks than
// processors it gives the processor away at once instead: the one waited for may need it.
//
// Publishing must not cost a fence, for it is on the way of the smallest call. So the one who goes
// to sleep pays: it says so, then has the kernel put a barrier into the running thread of every
// process that asked for it (membarrier(2), global expedited), and looks again. Either it sees the
// new value, or the publisher sees that it sleeps. Where the kernel has no such call the publisher
// fences.
//
// Thread-safety: one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "call/call.h"
#include "control/monitor.h"
#include "shm/board.h"

namespace muster::collective::shm {

class Waiter {
 public:
  /// `mine` is this rank's board. `crowded`: there are more ranks on the host than processors.
  Waiter(Board& mine, Monitor* monitor);

  void set_crowded(bool crowded) { crowded_ = crowded; }
  bool crowded() const { return crowded_; }

  /// The call that waits belong to, for the words of the monitor. It has to stay where it is until
  /// the next begin(): waits for room may come before it.
  void begin(const Call& call) { call_ = &call; }

  /// Makes `value` seen, and all that was written before.
  void publish(std::atomic<std::uint64_t>& signal, std::uint64_t value) {
    if (fences_myself_) {
      signal.exchange(value, std::memory_order_seq_cst);
    } else {
      signal.store(value, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    if (mine_.sleepers.load(std::memory_order_relaxed) != 0) wake(signal);
  }

  /// Waits until `signal`, which is on the board `theirs`, has reached `target`. False: the world
  /// has failed.
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
  const Call* call_ = nullptr;
  bool fences_myself_ = true;
  bool crowded_ = false;
};

}  // namespace muster::collective::shm
