// Writes JSON by appending to a string: no tree in between, fields in the order they are written.
// It writes the text of JSON, or the same document as CBOR (RFC 8949), for the store.
//
// Not thread-safe. The caller keeps the brackets balanced.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace muster::record {

class JsonWriter {
 public:
  enum class Encoding { kText, kCbor };

  explicit JsonWriter(std::string& out, Encoding encoding = Encoding::kText)
      : out_(out), is_cbor_(encoding == Encoding::kCbor) {}

  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  /// REQUIRES: within an object. Bytes in `name` that are not UTF-8 are replaced.
  JsonWriter& key(std::string_view name);

  /// Any bytes. Bytes that are not UTF-8 become {"base64": "..."}.
  JsonWriter& text(std::string_view bytes);
  /// A sentence for people: bytes that are not UTF-8 are replaced by U+FFFD.
  JsonWriter& prose(std::string_view text);
  JsonWriter& base64(std::string_view bytes);
  JsonWriter& time(base::Time time);
  JsonWriter& number(int64_t value);
  /// As decimals: 500 is 0.5.
  JsonWriter& milli(int64_t thousandths);
  /// The shortest text that reads back as the same number; null for NaN and infinities.
  JsonWriter& real(double value);
  JsonWriter& null();
  /// REQUIRES: JSON, and that text is written.
  JsonWriter& value(std::string_view json) { return word(json); }
  JsonWriter& texts(const std::vector<std::string>& texts);
  JsonWriter& numbers(const std::vector<int>& numbers);
  /// Only bool: a pointer would turn into one in silence.
  JsonWriter& flag(std::same_as<bool> auto value) { return truth(value); }

 private:
  JsonWriter& truth(bool value);
  /// REQUIRES: ASCII of which nothing is escaped.
  JsonWriter& plain(std::string_view text);
  JsonWriter& word(std::string_view word);
  JsonWriter& byte(unsigned char byte);
  void separate();
  void append_quoted(std::string_view text);
  void append_head(unsigned major, uint64_t argument);

  std::string& out_;
  bool is_cbor_;
  bool first_ = true;  ///< the next value needs no comma before it
};

}  // namespace muster::record
