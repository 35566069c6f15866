// A CBOR document (RFC 8949) as a tree of values, as far as CborWriter writes it: no tags, nothing
// of indefinite length, of the floating-point numbers only the 64-bit ones.
//
// Pure. Asking a value for what it is not throws std::runtime_error, as do the readers built on it;
// from_document() and its like catch it, so it goes no further.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::store {

class CborValue {
 public:
  /// The whole of `document`, whose bytes must outlive the value.
  static CborValue parse(std::string_view document);

  bool is_null() const { return type_ == Type::kNull; }
  bool flag() const;
  int64_t number() const;
  int small_number() const;  ///< within the range of int
  double real() const;
  std::string text() const;
  std::string bytes() const;
  const std::vector<CborValue>& list() const;

  /// nullptr: the map has no such key.
  const CborValue* find(std::string_view key) const;
  const CborValue& at(std::string_view key) const;

 private:
  friend class CborParser;
  enum class Type { kNull, kFlag, kNumber, kReal, kText, kBytes, kList, kMap };

  const CborValue& expect(Type type) const;

  Type type_ = Type::kNull;
  int64_t number_ = 0;  ///< also of a flag
  double real_ = 0;
  std::string_view string_;  ///< of a text or bytes
  std::vector<CborValue> list_;
  std::vector<std::pair<std::string_view, CborValue>> map_;
};

}  // namespace muster::store
