// The parameters of one statement in PostgreSQL's binary format: nothing is quoted, nothing is
// copied through a textual form.
//
// Values. The server infers the types from the statement: a text and a bytea have the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::store {

class PostgresParameters {
 public:
  PostgresParameters& bytes(std::string_view bytes) {
    values_.push_back({.bytes = std::string(bytes)});
    return *this;
  }
  PostgresParameters& text(std::string_view utf8) { return bytes(utf8); }
  PostgresParameters& number(int64_t value) { return bytes(big_endian(value, 8)); }
  PostgresParameters& null() {
    values_.push_back({.is_null = true});
    return *this;
  }
  /// A text[]: dimensions, has no NULL, type of the elements, length, lower bound; then each with
  /// its length.
  PostgresParameters& texts(const std::vector<std::string>& texts) {
    constexpr int64_t kTextOid = 25;
    std::string array =
        big_endian(texts.empty() ? 0 : 1, 4) + big_endian(0, 4) + big_endian(kTextOid, 4);
    if (!texts.empty())
      array += big_endian(static_cast<int64_t>(texts.size()), 4) + big_endian(1, 4);
    for (const std::string& text : texts) {
      array += big_endian(static_cast<int64_t>(text.size()), 4) + text;
    }
    return bytes(array);
  }

  size_t size() const { return values_.size(); }
  /// nullptr: NULL.
  const char* data(size_t i) const {
    return values_[i].is_null ? nullptr : values_[i].bytes.data();
  }
  int length(size_t i) const { return static_cast<int>(values_[i].bytes.size()); }

 private:
  struct Value {
    std::string bytes;
    bool is_null = false;
  };

  static std::string big_endian(int64_t value, int bytes) {
    std::string result;
    while (bytes-- > 0) result += static_cast<char>(static_cast<uint64_t>(value) >> (8 * bytes));
    return result;
  }

  std::vector<Value> values_;
};

}  // namespace muster::store
