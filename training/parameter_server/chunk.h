// The encoding of values: messages of at most kChunkBytes, far below gRPC's limit of 4 MiB, so that
// a model may have any size. Such a message is
//
//   message ... { bytes data = 2; }
//
// and is encoded and decoded here, since libprotobuf would copy each value two more times. Other
// clients see ordinary protobuf.
//
// Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"

namespace muster::parameter_server {

inline constexpr std::size_t kChunkBytes = 1024 * 1024;

/// The bytes before the data of a chunk of `bytes` bytes, at most kChunkBytes.
class ChunkHead {
 public:
  explicit ChunkHead(std::size_t bytes);
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, 6> bytes_ = {};
  std::size_t size_ = 0;
};

/// Decodes one message from pieces, as they arrive from the network.
class ChunkReader {
 public:
  /// The part of `piece` that is data; may be empty. nullopt: the message is not a chunk.
  std::optional<std::span<const std::byte>> take(std::span<const std::byte> piece);

  /// The message may end here.
  bool is_complete() const { return state_ == State::kData && left_ == 0; }

 private:
  enum class State { kTag, kLength, kData, kBroken };

  void take_head(std::byte byte);

  State state_ = State::kTag;
  int shift_ = 0;
  std::uint64_t left_ = 0;  // bytes of data that are still missing
};

/// Writes bytes that arrive in pieces of any length into buffers, one after the other.
class Filler {
 public:
  /// The buffers outlive this object.
  explicit Filler(std::vector<std::span<float>> buffers) : buffers_(std::move(buffers)) {}

  /// False if there are more bytes than the buffers hold; the filler must not be used further.
  bool take(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (current_ == buffers_.size()) return false;
      const std::span<std::byte> room = std::as_writable_bytes(buffers_[current_]).subspan(at_);
      const std::size_t count = std::min(room.size(), bytes.size());
      if (count != 0) std::memcpy(room.data(), bytes.data(), count);
      at_ += count;
      filled_ += count;
      bytes = bytes.subspan(count);
      if (count == room.size()) {
        ++current_;
        at_ = 0;
      }
    }
    return true;
  }

  /// The bytes written so far, in all buffers.
  std::size_t filled() const { return filled_; }

 private:
  std::vector<std::span<float>> buffers_;
  std::size_t current_ = 0;
  std::size_t at_ = 0;  // bytes of the current buffer that are filled
  std::size_t filled_ = 0;
};

/// The index of the first NaN or infinity, which would spoil a model for good; empty if all are
/// finite.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

/// Checks values as they arrive, while they are still in the cache.
class Inspection {
 public:
  explicit Inspection(std::span<const float> values) : values_(values) {}

  /// Checks the values up to byte `bytes` that were not checked before. Returns the first that is
  /// not finite.
  std::optional<std::size_t> look(std::size_t bytes) {
    const std::size_t end = bytes / sizeof(float);
    const auto found = first_not_finite(values_.subspan(seen_, end - seen_));
    if (found) return seen_ + *found;
    seen_ = end;
    return std::nullopt;
  }

 private:
  std::span<const float> values_;
  std::size_t seen_ = 0;
};

/// The error of a push of `worker` with `value` at `where` ("element 7 of 'w'"): kBadArgument.
collective::Error not_finite(float value, const std::string& where, int worker);

}  // namespace muster::parameter_server
