#include "session/mail_rings.h"

#include <utility>

namespace muster::collective::session {
namespace {

// A short letter must fit into half of a ring.
constexpr std::uint64_t kLeastMailRing = std::uint64_t{192} << 10;
constexpr std::uint64_t kMailPositions = 2 * sizeof(Position);  // the writer's and the reader's

}  // namespace

std::uint64_t MailRings::least_bytes(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return n * n * kLeastMailRing;
}

MailRings::MailRings(int rank, int size, std::byte* memory, std::uint64_t bytes, Reserve reserve)
    : rank_(rank),
      size_(size),
      memory_(memory),
      bytes_of_ring_(bytes / static_cast<std::uint64_t>(size * size) / 64 * 64),
      reserve_(std::move(reserve)),
      is_open_(static_cast<std::size_t>(size), reserve_ ? 0 : 1),
      is_readable_(!reserve_) {
  const auto ring = [&](int from, int to) {
    std::byte* const place = place_of(from, to);
    auto* const positions = reinterpret_cast<Position*>(place);
    return Ring(positions, positions + 1, 1, place + kMailPositions,
                bytes_of_ring_ - kMailPositions, reserve_);
  };
  for (int other = 0; other < size; ++other) {
    out_.push_back(ring(rank, other));
    in_.push_back(ring(other, rank));
  }
}

std::byte* MailRings::place_of(int from, int to) const {
  return memory_ + static_cast<std::uint64_t>(from * size_ + to) * bytes_of_ring_;
}

bool MailRings::open_to(int to) {
  char& is_open = is_open_[static_cast<std::size_t>(to)];
  if (is_open == 0 && reserve_(place_of(rank_, to), kMailPositions)) is_open = 1;
  return is_open != 0;
}

bool MailRings::open_for_reading() {
  for (int from = 0; from < size_ && !is_readable_; ++from) {
    if (from != rank_ && !reserve_(place_of(from, rank_), kMailPositions)) return false;
  }
  return is_readable_ = true;
}

}  // namespace muster::collective::session
