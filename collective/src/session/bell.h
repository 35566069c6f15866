// How a rank is woken. It lies in memory that ranks share, or in a process's own.
//
// Whoever puts something down for a rank looks at its attention afterwards and rings only where
// nobody there is looking; whoever stops looking says so first and then looks once more. Both touch
// the same word with a read-modify-write, so one of the two comes after the other and sees what it
// did: nothing is missed, and nobody makes a system call unless somebody sleeps.
//
// Thread-safety: all methods, from any thread of any process. No lock is taken: a process that dies
// leaves nothing behind that others wait for. A Bell is valid when it is all zero.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "transport/deadline.h"

namespace muster::collective::session {

enum class Attention : std::uint32_t {
  kAsleep = 0,   // ring for anything
  kPatient = 1,  // wakes by itself in time for what is unfinished: ring for what can be carried out
  kAwake = 2,    // looking
};

struct alignas(64) Bell {
  std::atomic<std::uint32_t> rung{0};
  std::atomic<std::uint32_t> attention{0};

  /// After something was put down: wakes whoever has to know.
  void notify(bool finished) {
    const auto now = static_cast<Attention>(attention.fetch_or(0, std::memory_order_acq_rel));
    if (now == Attention::kAwake || (now == Attention::kPatient && !finished)) return;
    ring();
  }
  void ring();

  void attend() {
    attention.exchange(static_cast<std::uint32_t>(Attention::kAwake), std::memory_order_acq_rel);
  }
  void rest(Attention how) {
    attention.exchange(static_cast<std::uint32_t>(how), std::memory_order_acq_rel);
  }

  /// To be taken before looking for what there is, and whether to go on, and handed to wait().
  std::uint32_t count() const { return rung.load(std::memory_order_acquire); }

  /// Sleeps until it has rung since `seen`, or until the deadline.
  void wait(std::uint32_t seen, std::optional<Deadline> until);
};

/// Sleeps while `word` is `value`, until woken, or the deadline has passed. May return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<Deadline> until);
void futex_wake(std::atomic<std::uint32_t>& word, int sleepers);

}  // namespace muster::collective::session
