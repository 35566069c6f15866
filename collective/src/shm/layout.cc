#include "shm/layout.h"

namespace muster::collective::shm {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kSessionBytes = std::uint64_t{16} << 20;

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

}  // namespace

Layout layout_of(int ranks, std::uint64_t arena_bytes_per_rank) {
  const auto n = static_cast<std::uint64_t>(ranks);
  Layout layout{.ranks = ranks};
  layout.channels = whole_pages(n * kBoardBytes);
  layout.session = layout.channels + whole_pages(n * n * kChannelBytes);
  layout.session_bytes = kSessionBytes;
  layout.cells = layout.session + kSessionBytes;
  layout.arenas = layout.cells + n * kRingBytes;
  layout.arena_bytes_per_rank = whole_pages(arena_bytes_per_rank);
  layout.total = layout.arenas + n * layout.arena_bytes_per_rank;
  return layout;
}

}  // namespace muster::collective::shm
