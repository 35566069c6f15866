// Writes CBOR (RFC 8949) by appending to a string: no tree in between, so that a document costs
// little more than its bytes.
//
// Not thread-safe. Whoever calls writes as many values behind map() and list() as they announce.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::store {

class CborWriter {
 public:
  explicit CborWriter(std::string& out) : out_(out) {}

  /// So many pairs of key() and value follow.
  CborWriter& map(size_t pairs) { return head(Major::kMap, pairs); }
  CborWriter& list(size_t values) { return head(Major::kList, values); }
  CborWriter& key(std::string_view name) { return text(name); }

  /// REQUIRES: UTF-8.
  CborWriter& text(std::string_view utf8) { return string(Major::kText, utf8); }
  CborWriter& bytes(std::string_view bytes) { return string(Major::kBytes, bytes); }
  CborWriter& number(int64_t value) {
    return value >= 0 ? head(Major::kUnsigned, static_cast<uint64_t>(value))
                      : head(Major::kNegative, ~static_cast<uint64_t>(value));
  }
  CborWriter& real(double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return initial(kDouble).big_endian(bits, sizeof bits);
  }
  CborWriter& flag(bool value) { return initial(value ? kTrue : kFalse); }
  CborWriter& null() { return initial(kNull); }

 private:
  enum class Major : uint8_t { kUnsigned, kNegative, kBytes, kText, kList, kMap };
  static constexpr uint8_t kFalse = 0xF4;
  static constexpr uint8_t kTrue = 0xF5;
  static constexpr uint8_t kNull = 0xF6;
  static constexpr uint8_t kDouble = 0xFB;

  CborWriter& string(Major major, std::string_view bytes) {
    head(major, bytes.size());
    out_ += bytes;
    return *this;
  }

  /// What comes, and its value or length, in as few bytes as hold it.
  CborWriter& head(Major major, uint64_t value) {
    const auto type = static_cast<uint8_t>(static_cast<unsigned>(major) << 5U);
    if (value < 24) return initial(static_cast<uint8_t>(type | value));
    if (value <= UINT8_MAX) return initial(type | 24U).big_endian(value, 1);
    if (value <= UINT16_MAX) return initial(type | 25U).big_endian(value, 2);
    if (value <= UINT32_MAX) return initial(type | 26U).big_endian(value, 4);
    return initial(type | 27U).big_endian(value, 8);
  }

  CborWriter& initial(unsigned byte) {
    out_ += static_cast<char>(byte);
    return *this;
  }

  CborWriter& big_endian(uint64_t value, size_t bytes) {
    while (bytes-- > 0) out_ += static_cast<char>(value >> (8 * bytes));
    return *this;
  }

  std::string& out_;
};

}  // namespace muster::store
