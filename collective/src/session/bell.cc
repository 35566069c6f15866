#include "session/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace muster::collective::session {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

}  // namespace

// Not the private kind of futex: the word may lie in memory that processes share. The deadline is
// absolute and of the monotonic clock, which steady_clock is.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<Deadline> until) {
  timespec time = {};
  if (until) {
    const auto since_start = until->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
    time.tv_sec = static_cast<time_t>(seconds.count());
    time.tv_nsec = static_cast<long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_start - seconds).count());
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, until ? &time : nullptr, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(std::atomic<std::uint32_t>& word, int sleepers) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

void Bell::ring() {
  rung.fetch_add(1, std::memory_order_release);
  futex_wake(rung, INT_MAX);
}

void Bell::wait(std::uint32_t seen, std::optional<Deadline> until) {
  while (rung.load(std::memory_order_acquire) == seen && (!until || Clock::now() < *until)) {
    futex_wait(rung, seen, until);
  }
}

}  // namespace muster::collective::session
