// Lays bytes that come in pieces of any length into buffers, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace muster::parameter_server {

class Filler {
 public:
  /// The buffers outlive this object.
  explicit Filler(std::vector<std::span<float>> buffers) : buffers_(std::move(buffers)) {}

  /// False where there are more bytes than room; then nothing more is to be taken.
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

  /// Bytes, of all buffers.
  std::size_t filled() const { return filled_; }

 private:
  std::vector<std::span<float>> buffers_;
  std::size_t current_ = 0;
  std::size_t at_ = 0;  // bytes of the current buffer that are filled
  std::size_t filled_ = 0;
};

}  // namespace muster::parameter_server
