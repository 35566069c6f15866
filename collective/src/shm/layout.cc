#include "shm/layout.h"

#include <algorithm>
#include <iterator>

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
  layout.mail = layout.session + kSessionBytes;
  layout.mail_bytes = whole_pages(n * n * kMailBytes);
  layout.cells = layout.mail + layout.mail_bytes;
  layout.arenas = layout.cells + n * kRingBytes;
  layout.arena_bytes_per_rank = whole_pages(arena_bytes_per_rank);
  layout.total = layout.arenas + n * layout.arena_bytes_per_rank;
  return layout;
}

namespace {

constexpr std::uint64_t kAlignment = 64;

// Memory is reserved in steps. Each step is a system call for at least a huge page.
constexpr std::uint64_t kStep = std::uint64_t{2} << 20;

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Arena::Arena(const SharedMemory& memory, std::uint64_t offset, std::uint64_t bytes)
    : memory_(memory), end_(offset + bytes), set_aside_until_(offset) {
  if (bytes > 0) free_.emplace(offset, bytes);
}

bool Arena::set_aside(std::uint64_t end) {
  if (end <= set_aside_until_) return true;
  const std::uint64_t goal = std::min(aligned(end, kStep), end_);
  const std::uint64_t bytes = goal - set_aside_until_;
  if (!memory_.reserve(set_aside_until_, bytes)) {
    // The caller uses ordinary memory instead, and needs what was allocated before the shortage.
    memory_.release(set_aside_until_, bytes);
    return false;
  }
  set_aside_until_ = goal;
  return true;
}

void* Arena::allocate(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (bytes > memory_.bytes()) return nullptr;
  const std::uint64_t needed = aligned(std::max<std::uint64_t>(bytes, 1), kAlignment);
  const auto room =
      std::ranges::find_if(free_, [&](const auto& free) { return free.second >= needed; });
  if (room == free_.end() || !set_aside(room->first + needed)) return nullptr;
  const auto [offset, available] = *room;
  free_.erase(room);
  if (available > needed) free_.emplace(offset + needed, available - needed);
  used_.emplace(offset, needed);
  return memory_.base() + offset;
}

void Arena::free(void* place) {
  const std::scoped_lock lock(mutex_);
  if (place == nullptr) return;
  const auto used =
      used_.find(static_cast<std::uint64_t>(static_cast<std::byte*>(place) - memory_.base()));
  if (used == used_.end()) return;
  auto here = free_.emplace(*used).first;
  used_.erase(used);
  if (const auto next = std::next(here);
      next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here != free_.begin()) {
    const auto before = std::prev(here);
    if (before->first + before->second == here->first) {
      before->second += here->second;
      free_.erase(here);
    }
  }
}

}  // namespace muster::collective::shm
