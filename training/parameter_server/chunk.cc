#include "parameter_server/chunk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace muster::parameter_server {
namespace {

// Field 2, length-delimited.
constexpr std::byte kTag{(2 << 3) | 2};
constexpr std::byte kMore{0x80};  // the varint continues

}  // namespace

ChunkHead::ChunkHead(std::size_t bytes) {
  bytes_[size_++] = kTag;
  for (; bytes >= 0x80; bytes >>= 7) bytes_[size_++] = static_cast<std::byte>(bytes) | kMore;
  bytes_[size_++] = static_cast<std::byte>(bytes);
}

void ChunkReader::take_head(std::byte byte) {
  if (state_ == State::kTag) {
    state_ = byte == kTag ? State::kLength : State::kBroken;
    return;
  }
  left_ |= std::to_integer<std::uint64_t>(byte & ~kMore) << shift_;
  shift_ += 7;
  if (left_ > kChunkBytes || shift_ > 28) {
    state_ = State::kBroken;
  } else if ((byte & kMore) == std::byte{0}) {
    state_ = State::kData;
  }
}

std::optional<std::span<const std::byte>> ChunkReader::take(std::span<const std::byte> piece) {
  while (!piece.empty() && (state_ == State::kTag || state_ == State::kLength)) {
    take_head(piece.front());
    piece = piece.subspan(1);
  }
  if (state_ == State::kBroken || piece.size() > left_) {
    state_ = State::kBroken;
    return std::nullopt;
  }
  left_ -= piece.size();
  return piece;
}

namespace {

// A NaN or an infinity has an exponent of all ones.
std::uint32_t is_odd(float value) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  return static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent);
}

// The loop has no branch, so that the compiler vectorizes it. It reads four places at once, so that
// their memory accesses overlap, which makes it twice as fast.
bool all_finite(std::span<const float> values) {
  const std::size_t quarter = values.size() / 4;
  const float* const first = values.data();
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < quarter; ++i) {
    found |= is_odd(first[i]) | is_odd(first[quarter + i]) | is_odd(first[2 * quarter + i]) |
             is_odd(first[3 * quarter + i]);
  }
  for (const float value : values.subspan(4 * quarter)) found |= is_odd(value);
  return found == 0;
}

}  // namespace

std::optional<std::size_t> first_not_finite(std::span<const float> values) {
  if (all_finite(values)) return std::nullopt;
  const auto found =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(found - values.begin());
}

collective::Error not_finite(float value, const std::string& where, int worker) {
  return {collective::ErrorCode::kBadArgument,
          "the gradient of worker " + std::to_string(worker) + " has " +
              (std::isnan(value) ? "a NaN" : "an infinity") + " as " + where +
              ", so the push was not applied",
          "the loss has diverged: try a lower learning rate, clipped gradients or other input",
          worker};
}

}  // namespace muster::parameter_server
