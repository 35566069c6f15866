// What one rank shows to the others of its host. It alone writes to its board, but for the count of
// sleepers, and each thing that changes on its own has a cache line of its own.
//
// A value that goes up tells how far the rank is: readers wait until it is far enough. Where data
// belongs to it, the data is written before and read after (release and acquire).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "call/call.h"
#include "shm/layout.h"

namespace muster::collective::shm {

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t kLine = 128;

/// What every rank publishes as it enters a call. Whoever reads it has all that a small call needs,
/// of the smallest in one cache line. Calls take turns with two of them, since a rank may be one
/// call ahead.
struct alignas(kLine) Entry {
  static constexpr std::size_t kInline = 512 - 16;

  std::atomic<std::uint64_t> sequence;     // of the call: written last
  std::atomic<std::uint64_t> signature;    // of the call: all must be equal
  std::array<std::byte, kInline> payload;  // a small message, or what the call needs to begin
};
static_assert(sizeof(Entry) == 512);

/// A position in the rank's stream of staged bytes, or a count.
struct alignas(kLine) Signal {
  std::atomic<std::uint64_t> value;
};

/// What a call says of itself in its entry, where its data is not there in full.
struct EntryNote {
  static constexpr std::uint64_t kNotInArena = ~std::uint64_t{0};

  std::uint64_t in = kNotInArena;  // offsets in the shared memory of the first tensor's buffers
  std::uint64_t out = kNotInArena;
  std::uint64_t all_in_arena = 0;  // 1: so are those of all tensors of the list
  std::uint64_t in_place = 0;      // 1: inputs and outputs are the same
};
static_assert(sizeof(EntryNote) <= Entry::kInline);

struct Board {
  std::array<Entry, 2> entries;
  std::array<Call, 2> calls;  // for the words of a mismatch; they take turns as entries do
  Signal staged;              // inputs are in the ring up to here
  Signal reduced;             // results are in the ring up to here
  Signal consumed;  // everything that the others had in their rings up to here has been read
  Signal finished;  // calls whose work is done, of those that end with a meeting

  /// Threads that sleep on a value of this board, and so must be woken.
  alignas(kLine) std::atomic<std::uint32_t> sleepers;

  /// Set once, when the rank has come: what the others need to know about it.
  alignas(kLine) std::array<std::uint64_t, 16> processors;  // its affinity, a bit a processor
  std::atomic<std::uint32_t> fences_for_sleepers;           // 1: see Waiter
};
static_assert(sizeof(Board) <= kBoardBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<Call>);

}  // namespace muster::collective::shm
