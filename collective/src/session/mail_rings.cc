#include "session/mail_rings.h"

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

MailRings::MailRings(int rank, int size, std::byte* memory, std::uint64_t bytes) {
  const auto ranks = static_cast<std::uint64_t>(size);
  const std::uint64_t each = bytes / (ranks * ranks) / 64 * 64;
  const auto ring = [&](int from, int to) {
    std::byte* const place = memory + static_cast<std::uint64_t>(from * size + to) * each;
    auto* const positions = reinterpret_cast<Position*>(place);
    return Ring(positions, positions + 1, 1, place + kMailPositions, each - kMailPositions);
  };
  for (int other = 0; other < size; ++other) {
    out_.push_back(ring(rank, other));
    in_.push_back(ring(other, rank));
  }
}

}  // namespace muster::collective::session
