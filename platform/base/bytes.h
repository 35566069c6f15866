// Base64 (RFC 4648, section 4, padded): how bytes travel in text: in JSON, keys, variables.
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
/// With - and _ in the place of + and / (section 5).
std::string to_base64_for_urls(std::string_view bytes);

/// Nothing where `text` is no base64: padding is required, white space is none of it.
std::optional<std::string> from_base64(std::string_view text);

// Bytes that wait: added behind, taken in front.
//
// A value.

class ByteQueue {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  std::string_view front() const { return std::string_view(bytes_).substr(taken_); }
  size_t size() const { return bytes_.size() - taken_; }
  bool empty() const { return size() == 0; }
  size_t kept() const { return bytes_.size(); }  ///< in memory, with what was taken
  void clear() {
    bytes_.clear();
    taken_ = 0;
  }

  /// REQUIRES: there are so many. Moves what is left only now and then: a megabyte that goes out
  /// in pieces of a pipe's size would otherwise be moved twenty times. At most as much as is left
  /// is kept of what was taken.
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

// Numbers in the headers of what is stored and sent: little endian, whatever the machine is.
//
// Pure.

/// The lowest `bytes` bytes of it.
inline void append_little_endian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

/// REQUIRES: kBytes bytes are there.
template <size_t kBytes>
uint64_t little_endian(const char* bytes) {
  uint64_t number = 0;
  for (size_t i = kBytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace muster::base
