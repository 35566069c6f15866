// Whole numbers of variable length: seven bits in each byte, the lowest first; the highest bit of a
// byte means that another byte follows (LEB128, as in Protocol Buffers). Small numbers take one
// byte.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::base {

inline void append_varint(std::string& bytes, uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

/// Removes the number at the front of `bytes`; nothing: they end before it does.
inline std::optional<uint64_t> take_varint(std::string_view& bytes) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

/// Numbers of either sign that are near zero become small numbers.
constexpr uint64_t zigzag(int64_t number) {
  return static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
}
constexpr int64_t from_zigzag(uint64_t number) {
  return static_cast<int64_t>(number >> 1) ^ -static_cast<int64_t>(number & 1);
}

}  // namespace muster::base
