// A parsed JSON document: its values in one block of memory, their texts in another. A document is
// read once and thrown away, for which a tree of maps is expensive.
//
// Immutable; may be read by any thread. A Value belongs to its ValueTree and does not outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::record {

using Json = nlohmann::json;

class Value {
 public:
  enum class Kind : uint8_t {
    kNull,
    kFlag,
    kInteger,
    kHugeInteger,  ///< a whole number above the largest int64_t
    kReal,
    kText,
    kList,
    kObject,
  };

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_flag() const { return kind_ == Kind::kFlag; }
  bool is_integer() const { return kind_ == Kind::kInteger; }
  bool is_huge_integer() const { return kind_ == Kind::kHugeInteger; }
  bool is_real() const { return kind_ == Kind::kReal; }
  bool is_number() const { return is_integer() || is_huge_integer() || is_real(); }
  bool is_text() const { return kind_ == Kind::kText; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_object() const { return kind_ == Kind::kObject; }

  /// REQUIRES: is_flag().
  bool flag() const { return content_.integer != 0; }
  /// REQUIRES: is_integer().
  int64_t integer() const { return content_.integer; }
  /// REQUIRES: is_number().
  double real() const {
    return is_integer() ? static_cast<double>(content_.integer) : content_.real;
  }
  /// REQUIRES: is_text().
  std::string_view text() const { return {content_.characters, size_}; }

  /// Its name as a member of an object.
  std::string_view name() const { return {name_.characters, name_size_}; }

  /// The elements of a list, or the members of an object; other values have none.
  class Iterator;
  Iterator begin() const;
  Iterator end() const;
  size_t size() const { return is_list() || is_object() ? size_ : 0; }
  /// The last member of this name; nullptr if there is none, or the value is not an object.
  const Value* find(std::string_view name) const;

 private:
  friend class ValueTree;
  friend class ValueTreeBuilder;

  /// While the tree is being built, the block of characters may still move.
  union Characters {
    uint64_t offset = 0;
    const char* characters;
  };
  union Content {
    int64_t integer = 0;
    double real;
    uint64_t offset;
    const char* characters;
  };

  Content content_;
  Characters name_;
  uint32_t name_size_ = 0;
  uint32_t size_ = 0;    ///< bytes of a text; elements or members
  uint32_t extent_ = 1;  ///< how many values stand in the block for this one, itself included
  Kind kind_ = Kind::kNull;
};

class Value::Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Value;
  using pointer = const Value*;
  using reference = const Value&;
  using iterator_category = std::forward_iterator_tag;

  explicit Iterator(const Value* at = nullptr) : at_(at) {}
  const Value& operator*() const { return *at_; }
  const Value* operator->() const { return at_; }
  Iterator& operator++() {
    at_ += at_->extent_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  const Value* at_;
};

inline Value::Iterator Value::begin() const {
  return Iterator(this + 1);
}
inline Value::Iterator Value::end() const {
  return Iterator(this + extent_);
}

/// The place of a syntax error.
struct NotJson {
  size_t byte = 0;
  bool number_out_of_range = false;  ///< the text is JSON, but a number is out of range
};

class ValueTree {
 public:
  /// Nothing, with `fault` filled in, if `text` is not JSON.
  static std::optional<ValueTree> of_text(std::string_view text, NotJson* fault = nullptr);
  /// Nothing if `bytes` are not CBOR, or if a text in them is not UTF-8.
  static std::optional<ValueTree> of_cbor(std::string_view bytes);
  static ValueTree of(const Json& json);

  const Value& root() const { return values_.front(); }

 private:
  friend class ValueTreeBuilder;
  ValueTree() = default;

  std::vector<Value> values_;  ///< each before its elements or members
  std::unique_ptr<const std::string> characters_;
};

}  // namespace muster::record
