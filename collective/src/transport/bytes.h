// The encoding of numbers, texts and errors on the wire: little-endian; a text is preceded by its
// 16-bit length. Payloads of collectives are sent as they are in memory, so both ends must be
// little-endian; the library compiles for little-endian processors only.
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

#include "muster/collective/result.h"

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

  /// Reserves `bytes`, for messages on the fast path.
  explicit ByteWriter(std::size_t bytes) { bytes_.reserve(bytes); }

  template <std::integral T>
  ByteWriter& number(T value) {
    return raw(std::as_bytes(std::span(&value, 1)));
  }

  /// Texts are cut off at 65,535 bytes.
  ByteWriter& text(std::string_view value) {
    value = value.substr(0, 0xffff);
    return number(static_cast<std::uint16_t>(value.size())).raw(view_of(value));
  }

  // Not inlined: gcc 12 mistakes the growth of a vector whose size it can follow for an overflow.
  [[gnu::noinline]] ByteWriter& raw(ByteView bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// Reads what ByteWriter wrote. Past the end it returns zeros and empty texts, and ok() stays false
/// from then on. A caller reads the whole message and checks ok() once.
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

  /// The next `count` bytes, which belong to the owner of the message.
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

/// An Error on the wire: u32 code, i32 rank, text host, text message, text advice (result.h). Texts
/// are cut off at 16,000 bytes.
inline void write_error(ByteWriter& writer, const Error& error) {
  constexpr std::size_t kLongestText = 16'000;
  writer.number(static_cast<std::uint32_t>(error.code))
      .number(static_cast<std::int32_t>(error.rank))
      .text(std::string_view(error.host).substr(0, kLongestText))
      .text(std::string_view(error.message).substr(0, kLongestText))
      .text(std::string_view(error.advice).substr(0, kLongestText));
}

inline Error read_error(ByteReader& reader) {
  Error error;
  error.code = static_cast<ErrorCode>(reader.number<std::uint32_t>());
  error.rank = reader.number<std::int32_t>();
  error.host = reader.text();
  error.message = reader.text();
  error.advice = reader.text();
  return error;
}

}  // namespace muster::collective
