// The layout of the memory that the ranks of one host share: the board of each rank, and its arena.
//
//   boards     flags and small messages of each rank
//   channels   a small ring for each ordered pair, for send and receive
//   session    the channel of the asynchronous session (session/channel.h)
//   mail       a ring for each ordered pair, for the messages of the session (session/mail_rings.h)
//   cells      the staging ring of each rank
//   arenas     room for allocate_shared(), of each rank
//
// All of it is zero at first. Memory is occupied only once it is written.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>

#include "call/call.h"
#include "world/shared_memory.h"

namespace muster::collective::shm {

/// Offsets and lengths in bytes.
struct Layout {
  int ranks = 0;
  std::uint64_t boards = 0;
  std::uint64_t channels = 0;
  std::uint64_t session = 0;
  std::uint64_t session_bytes = 0;
  std::uint64_t mail = 0;
  std::uint64_t mail_bytes = 0;
  std::uint64_t cells = 0;
  std::uint64_t arenas = 0;
  std::uint64_t arena_bytes_per_rank = 0;
  std::uint64_t total = 0;
};

inline constexpr std::uint64_t kBoardBytes = 4096;
inline constexpr std::uint64_t kChannelBytes = std::uint64_t{256} << 10;
inline constexpr std::uint64_t kMailBytes = std::uint64_t{256} << 10;

/// The size of one rank's staging ring, which is the distance at which cells are reused. By then
/// the copies in the readers' caches have been evicted, so that writing need not invalidate them
/// (docs/collective.md has the measurement).
inline constexpr std::uint64_t kRingBytes = std::uint64_t{4} << 20;

/// The layout for `ranks` ranks, equal on all of them.
Layout layout_of(int ranks, std::uint64_t arena_bytes_per_rank);

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t kLine = 128;

/// What a rank publishes when it enters a call. It contains all data of a small call; that of the
/// smallest calls fits in one cache line. Calls alternate between two entries, since a rank may be
/// one call ahead.
struct alignas(kLine) Entry {
  static constexpr std::size_t kInline = 512 - 16;

  std::atomic<std::uint64_t> sequence;     // of the call: written last
  std::atomic<std::uint64_t> signature;    // of the call: all must be equal
  std::array<std::byte, kInline> payload;  // a small message, or data to begin the call with
};
static_assert(sizeof(Entry) == 512);

/// A position in the rank's stream of staged bytes, or a count.
struct alignas(kLine) Signal {
  std::atomic<std::uint64_t> value;
};

/// The payload of an entry that does not contain the data of its call.
struct EntryNote {
  static constexpr std::uint64_t kNotInArena = ~std::uint64_t{0};

  std::uint64_t in = kNotInArena;  // offsets in the shared memory of the first tensor's buffers
  std::uint64_t out = kNotInArena;
  std::uint64_t all_in_arena = 0;  // 1: the buffers of all tensors of the list are in the arena
  std::uint64_t in_place = 0;      // 1: inputs and outputs are the same
};
static_assert(sizeof(EntryNote) <= Entry::kInline);

/// The values that a rank publishes for the other ranks of its host. Only the rank itself writes to
/// its board, except for the number of sleepers. Values that change independently have separate
/// cache lines.
///
/// Counters only grow: readers wait until a counter is large enough. Data that belongs to a counter
/// is written before it and read after it (release and acquire).
struct Board {
  std::array<Entry, 2> entries;
  std::array<Call, 2> calls;  // for the message of a mismatch; they alternate like entries
  Signal staged;              // inputs are in the ring up to here
  Signal reduced;             // results are in the ring up to here
  Signal consumed;            // this rank has read the rings of all other ranks up to here
  Signal finished;            // completed calls, of those that end with a synchronisation

  /// Threads that sleep on a value of this board and must be woken.
  alignas(kLine) std::atomic<std::uint32_t> sleepers;

  /// Set once, when the rank has joined.
  alignas(kLine) std::array<std::uint64_t, 16> processors;  // its affinity mask
  std::atomic<std::uint32_t> fences_for_sleepers;           // 1: see Waiter
};
static_assert(sizeof(Board) <= kBoardBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<Call>);

/// The allocator of one rank's arena: memory that the other ranks of the host have mapped too.
/// First fit; adjacent free blocks are merged.
///
/// Memory is reserved in the system before it is returned, so that a shortage is an error of
/// allocate() and not a signal at the first access.
///
/// Thread-safety: all methods, from any thread.
class Arena {
 public:
  /// `bytes` bytes of `memory` from `offset` on; 0 for an empty arena.
  Arena(const SharedMemory& memory, std::uint64_t offset, std::uint64_t bytes);

  /// Aligned to 64 bytes. Null if there is no room.
  void* allocate(std::uint64_t bytes);

  /// Ignores null, and memory that is not from this arena.
  void free(void* place);

 private:
  bool set_aside(std::uint64_t end);

  const SharedMemory& memory_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
  std::map<std::uint64_t, std::uint64_t> used_;
  std::uint64_t end_;  // of the arena
  std::uint64_t set_aside_until_;
};

}  // namespace muster::collective::shm
