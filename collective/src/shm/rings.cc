#include "shm/rings.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <ctime>
#include <optional>
#include <utility>

namespace muster::collective::shm {
namespace {

// A peer on another core answers within a fraction of a microsecond, or within a few microseconds
// if it still has work to do. Waking a thread takes tens of microseconds, so it is worth spinning
// about as long.
constexpr int kSpins = 1500;       // 30 to 60 microseconds
constexpr int kSpinsCrowded = 20;  // the peer may be between its last two instructions
constexpr int kYieldsCrowded = 300;
constexpr int kYields = 4;

// The longest uninterrupted sleep. A failure wakes no sleeper here; it is noticed after this time
// at the latest.
constexpr long kNapNanoseconds = 50'000'000;
constexpr long kNapNanosecondsPacked = 200'000'000;  // where very many ranks wake up

// After this number of sleeps the monitor probes the other ranks.
constexpr int kNapsBeforeWatch = 2;

// The first part of a staging ring that is reserved.
constexpr std::uint64_t kLeastOccupied = std::uint64_t{64} << 10;

long membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0);
}

// The lower half of a 64-bit value, on a little-endian machine.
const std::uint32_t* futex_word(const std::atomic<std::uint64_t>& signal) {
  return reinterpret_cast<const std::uint32_t*>(&signal);
}

}  // namespace

std::string text_of(const Call* call) {
  return call == nullptr ? "a call" : to_string(*call);
}

Waiter::Waiter(Board& mine, Monitor* monitor, HasLeft has_left)
    : mine_(mine), monitor_(monitor), has_left_(std::move(has_left)) {
  fences_myself_ = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) != 0;
  mine.fences_for_sleepers.store(fences_myself_ ? 1 : 0, std::memory_order_release);
}

bool Waiter::reach_slowly(Board& theirs, const std::atomic<std::uint64_t>& signal,
                          std::uint64_t target) {
  const int spins = crowded_ ? kSpinsCrowded : kSpins;
  for (int i = 0; i < spins; ++i) {
    if (signal.load(std::memory_order_acquire) >= target) return true;
    if (i % 64 == 63 && failed()) return false;
    _mm_pause();
  }
  const int yields = crowded_ && !packed_ ? kYieldsCrowded : kYields;
  for (int i = 0; i < yields; ++i) {
    if (signal.load(std::memory_order_acquire) >= target) return true;
    if (failed()) return false;
    ::sched_yield();
  }
  return sleep_until(theirs, signal, target);
}

bool Waiter::sleep_until(Board& theirs, const std::atomic<std::uint64_t>& signal,
                         std::uint64_t target) {
  theirs.sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::optional<Monitor::Watch> watch;
  std::optional<Error> left;
  bool reached = false;
  for (int naps = 0;; ++naps) {
    // Not needed if the publisher uses a fence; see Waiter in rings.h.
    if (theirs.fences_for_sleepers.load(std::memory_order_acquire) == 0) {
      membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    }
    const std::uint64_t seen = signal.load(std::memory_order_seq_cst);
    reached = seen >= target;
    if (reached || failed()) break;
    // Found before the signal was read, so that it contains all that the rank has published.
    if (left) {
      monitor_->fail(*std::move(left));
      break;
    }
    if (naps >= kNapsBeforeWatch && monitor_ != nullptr) {
      if (!watch) watch.emplace(*monitor_, text_of(call_));
      // The monitor only detects a rank that has made fewer calls, and does so later. Messages are
      // not counted as calls.
      left = has_left_(theirs, call_);
      if (left) continue;
    }
    const timespec nap{0, packed_ ? kNapNanosecondsPacked : kNapNanoseconds};
    ::syscall(SYS_futex, futex_word(signal), FUTEX_WAIT, static_cast<std::uint32_t>(seen), &nap,
              nullptr, 0);
  }
  theirs.sleepers.fetch_sub(1, std::memory_order_relaxed);
  return reached;
}

void Waiter::wake(const std::atomic<std::uint64_t>& signal) {
  ::syscall(SYS_futex, futex_word(signal), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Rings::Rings(std::byte* base, const Layout& layout, int self, Waiter& waiter,
             const SharedMemory* memory, Monitor* monitor)
    : base_(base),
      cells_(layout.cells),
      ranks_(layout.ranks),
      self_(self),
      waiter_(waiter),
      memory_(memory),
      monitor_(monitor),
      occupied_(memory == nullptr ? kRingBytes : 0),
      free_until_(occupied_) {}

bool Rings::find_room(std::uint64_t end) {
  if (occupied_ < kRingBytes) {
    if (!occupy(std::min(end, kRingBytes))) return false;
    free_until_ = occupied_;
    if (end <= free_until_) return true;
  }
  return await_readers(end);
}

// Doubles at least, so that a long call makes few system calls.
bool Rings::occupy(std::uint64_t bytes) {
  if (bytes <= occupied_) return true;
  const std::uint64_t goal = std::min(std::bit_ceil(std::max(bytes, kLeastOccupied)), kRingBytes);
  const std::uint64_t ring = cells_ + static_cast<std::uint64_t>(self_) * kRingBytes;
  if (Status there = memory_->reserve(ring + occupied_, goal - occupied_); !there) {
    if (monitor_ != nullptr) monitor_->fail(there.error());
    return false;
  }
  occupied_ = goal;
  return true;
}

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
