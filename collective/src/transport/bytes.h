// Numbers and texts as bytes on the wire: little-endian, texts with a 16-bit length before them.
// Payloads of collectives travel as they lie in memory, so both ends must be little-endian; the
// library does not compile elsewhere.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::collective {

static_assert(std::endian::native == std::endian::little);

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView view_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class ByteWriter {
 public:
  ByteWriter() = default;

  /// With room for so many bytes, for what is on a quick way.
  explicit ByteWriter(std::size_t bytes) { bytes_.reserve(bytes); }

  template <std::integral T>
  ByteWriter& number(T value) {
    return raw(std::as_bytes(std::span(&value, 1)));
  }

  /// Cut off at 65,535 bytes.
  ByteWriter& text(std::string_view value) {
    value = value.substr(0, 0xffff);
    return number(static_cast<std::uint16_t>(value.size())).raw(view_of(value));
  }

  // Not inlined: gcc 12 takes the growth of a vector whose size it can follow for an overflow.
  [[gnu::noinline]] ByteWriter& raw(ByteView bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads what ByteWriter wrote. Past the end it gives zeros and empty texts, and ok() turns false
/// for good: a message is read to its end and judged once.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  template <std::integral T>
  T number() {
    T value = 0;
    const ByteView bytes = raw(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::string text() {
    const ByteView bytes = raw(number<std::uint16_t>());
    std::string value(bytes.size(), '\0');
    if (!bytes.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
    return value;
  }

  /// The next `count` bytes; they stay with the owner of the message.
  ByteView raw(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const ByteView bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

 private:
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace muster::collective
