#include "parameter_server/chunk.h"

namespace muster::parameter_server {
namespace {

// Field 2, length-delimited.
constexpr std::byte kTag{(2 << 3) | 2};
constexpr std::byte kMore{0x80};  // a varint has another byte

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

}  // namespace muster::parameter_server
