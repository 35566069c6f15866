// Base64 (RFC 4648, section 4, padded): bytes as text in JSON, keys and variables.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::base {

void append_base64(std::string& out, std::string_view bytes);
std::string to_base64(std::string_view bytes);
/// With - and _ instead of + and / (section 5).
std::string to_base64_for_urls(std::string_view bytes);

/// Nothing if `text` is not base64: padding is required, white space is not allowed.
std::optional<std::string> from_base64(std::string_view text);

// A queue of bytes: appended at the back, taken from the front.
//
// A value.

class ByteQueue {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  std::string_view front() const { return std::string_view(bytes_).substr(taken_); }
  size_t size() const { return bytes_.size() - taken_; }
  bool empty() const { return size() == 0; }
  size_t kept() const { return bytes_.size(); }  ///< in memory, including bytes that were taken
  void clear() {
    bytes_.clear();
    taken_ = 0;
  }

  /// REQUIRES: the queue has at least `count` bytes. Moves the remaining bytes only occasionally:
  /// otherwise a megabyte that is sent in pieces of a pipe's size would be moved twenty times. The
  /// memory of taken bytes is at most that of the remaining ones.
  void take(size_t count) {
    taken_ += count;
    if (taken_ < bytes_.size() / 2) return;
    bytes_.erase(0, taken_);
    taken_ = 0;
  }

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

// Numbers in the headers of stored and sent data: little endian on every machine.
//
// Pure.

/// The lowest `bytes` bytes of the number.
inline void append_little_endian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

/// REQUIRES: the text has at least kBytes bytes.
template <size_t kBytes>
uint64_t little_endian(const char* bytes) {
  uint64_t number = 0;
  for (size_t i = kBytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace muster::base
