#include "record/value.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace muster::record {

const Value* Value::find(std::string_view name) const {
  const Value* found = nullptr;
  if (!is_object()) return found;
  for (const Value& member : *this) {
    if (member.name() == name) found = &member;
  }
  return found;
}

/// Receives the events of nlohmann's parsers.
class ValueTreeBuilder {
 public:
  /// `checks_texts`: for a parser that does not check that texts are UTF-8.
  explicit ValueTreeBuilder(size_t expected_characters, bool checks_texts = false)
      : checks_texts_(checks_texts) {
    characters_->reserve(expected_characters);
  }

  bool null() {
    add(Value::Kind::kNull);
    return true;
  }
  bool boolean(bool value) {
    add(Value::Kind::kFlag).content_.integer = value ? 1 : 0;
    return true;
  }
  bool number_integer(int64_t value) {
    add(Value::Kind::kInteger).content_.integer = value;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return number_integer(static_cast<int64_t>(value));
    }
    add(Value::Kind::kHugeInteger).content_.real = static_cast<double>(value);
    return true;
  }
  bool number_float(double value, const std::string&) {
    add(Value::Kind::kReal).content_.real = value;
    return true;
  }
  bool string(const std::string& text) {
    if (!fits(text.size()) || !is_text(text)) return false;
    Value& value = add(Value::Kind::kText);
    value.content_.offset = kept(text);
    value.size_ = static_cast<uint32_t>(text.size());
    return true;
  }
  /// CBOR has byte strings; JSON has none.
  bool binary(const Json::binary_t&) { return false; }

  bool start_object(size_t) { return open(Value::Kind::kObject); }
  bool start_array(size_t) { return open(Value::Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(const std::string& name) {
    if (!fits(name.size()) || !is_text(name)) return false;
    name_offset_ = kept(name);
    name_size_ = static_cast<uint32_t>(name.size());
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    fault_ = {.byte = byte, .number_out_of_range = error.id == kNumberOutOfRange};
    return false;
  }
  const NotJson& fault() const { return fault_; }

  void add_json(const Json& json) {
    switch (json.type()) {
      case Json::value_t::object:
        start_object(json.size());
        for (const auto& [name, member] : json.items()) {
          key(name);
          add_json(member);
        }
        end_object();
        return;
      case Json::value_t::array:
        start_array(json.size());
        for (const Json& element : json) add_json(element);
        end_array();
        return;
      case Json::value_t::string:
        string(json.get_ref<const std::string&>());
        return;
      case Json::value_t::boolean:
        boolean(json.get<bool>());
        return;
      case Json::value_t::number_integer:
        number_integer(json.get<int64_t>());
        return;
      case Json::value_t::number_unsigned:
        number_unsigned(json.get<uint64_t>());
        return;
      case Json::value_t::number_float:
        number_float(json.get<double>(), "");
        return;
      default:
        null();
    }
  }

  /// The characters no longer move, so offsets become pointers.
  ValueTree finish() && {
    const char* const base = characters_->data();
    for (Value& value : values_) {
      value.name_.characters = base + value.name_.offset;
      if (value.is_text()) value.content_.characters = base + value.content_.offset;
    }
    ValueTree tree;
    tree.values_ = std::move(values_);
    tree.characters_ = std::move(characters_);
    return tree;
  }

 private:
  bool fits(size_t more) const {
    constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
    return more <= kMost && values_.size() < kMost;
  }

  bool is_text(const std::string& bytes) const { return !checks_texts_ || base::is_utf8(bytes); }

  uint64_t kept(const std::string& text) {
    const uint64_t offset = characters_->size();
    *characters_ += text;
    return offset;
  }

  Value& add(Value::Kind kind) {
    if (!open_.empty()) ++values_[open_.back()].size_;
    Value& value = values_.emplace_back();
    value.kind_ = kind;
    value.name_.offset = name_offset_;
    value.name_size_ = name_size_;
    name_size_ = 0;
    return value;
  }

  bool open(Value::Kind kind) {
    if (!fits(0)) return false;
    add(kind);
    open_.push_back(values_.size() - 1);
    return true;
  }

  bool close() {
    values_[open_.back()].extent_ = static_cast<uint32_t>(values_.size() - open_.back());
    open_.pop_back();
    return true;
  }

  const bool checks_texts_;
  std::vector<Value> values_;
  std::unique_ptr<std::string> characters_ = std::make_unique<std::string>();
  std::vector<size_t> open_;  ///< the lists and objects that are not closed yet
  uint64_t name_offset_ = 0;
  uint32_t name_size_ = 0;
  NotJson fault_;
};

std::optional<ValueTree> ValueTree::of_text(std::string_view text, NotJson* fault) {
  ValueTreeBuilder builder(text.size());
  if (Json::sax_parse(text, &builder)) return std::move(builder).finish();
  if (fault != nullptr) *fault = builder.fault();
  return std::nullopt;
}

std::optional<ValueTree> ValueTree::of_cbor(std::string_view bytes) {
  ValueTreeBuilder builder(bytes.size(), true);
  if (!Json::sax_parse(bytes, &builder, Json::input_format_t::cbor)) return std::nullopt;
  return std::move(builder).finish();
}

ValueTree ValueTree::of(const Json& json) {
  ValueTreeBuilder builder(0);
  builder.add_json(json);
  return std::move(builder).finish();
}

}  // namespace muster::record
