// How the memory that the ranks of one host share is divided.
//
//   boards     flags and small messages of each rank
//   channels   a small ring for each ordered pair, for send and receive
//   session    what the asynchronous sessions agree on; theirs alone (session/)
//   cells      the staging ring of each rank
//   arenas     room for allocate_shared(), of each rank
//
// All of it is zero at first, and costs memory only where it is touched. Pure.
#pragma once

#include <cstdint>

namespace muster::collective::shm {

/// Offsets and lengths in bytes.
struct Layout {
  int ranks = 0;
  std::uint64_t boards = 0;
  std::uint64_t channels = 0;
  std::uint64_t session = 0;
  std::uint64_t session_bytes = 0;
  std::uint64_t cells = 0;
  std::uint64_t arenas = 0;
  std::uint64_t arena_bytes_per_rank = 0;
  std::uint64_t total = 0;
};

inline constexpr std::uint64_t kBoardBytes = 4096;
inline constexpr std::uint64_t kChannelBytes = std::uint64_t{256} << 10;

/// The staging ring of one rank. Its size is the distance at which cells are used again: until then
/// the copies that the readers hold have left their caches, and writing is not slowed down by
/// taking them away (docs/collective.md has the measurement).
inline constexpr std::uint64_t kRingBytes = std::uint64_t{4} << 20;

/// For `ranks` ranks on a host; the same on all of them.
Layout layout_of(int ranks, std::uint64_t arena_bytes_per_rank);

}  // namespace muster::collective::shm
