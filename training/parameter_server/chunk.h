// How values travel: as messages of at most kChunkBytes, far below the 4 MiB that gRPC takes, so a
// model may be of any size. Such a message is
//
//   message ... { bytes data = 2; }
//
// and is written and read here by hand: libprotobuf would copy each value twice more on its way.
// Any other client sees ordinary protobuf.
//
// Pure: bytes in, bytes out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace muster::parameter_server {

inline constexpr std::size_t kChunkBytes = 1024 * 1024;

/// What stands before the data of a chunk of `bytes` bytes, at most kChunkBytes.
class ChunkHead {
 public:
  explicit ChunkHead(std::size_t bytes);
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, 6> bytes_ = {};
  std::size_t size_ = 0;
};

/// Takes one message in pieces, as they come from the network, and gives back its data.
class ChunkReader {
 public:
  /// The part of `piece` that is data, which may be none of it. Nothing: this is no chunk.
  std::optional<std::span<const std::byte>> take(std::span<const std::byte> piece);

  /// The message may end here.
  bool is_complete() const { return state_ == State::kData && left_ == 0; }

 private:
  enum class State { kTag, kLength, kData, kBroken };

  void take_head(std::byte byte);

  State state_ = State::kTag;
  int shift_ = 0;
  std::uint64_t left_ = 0;  // bytes of data that are still to come
};

}  // namespace muster::parameter_server
