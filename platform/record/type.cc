#include "record/type.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "record/field.h"

namespace muster::record {

namespace {

template <class T>
const T& as_value(const void* value) {
  return *static_cast<const T*>(value);
}
template <class T>
T& as_target(void* value) {
  return *static_cast<T*>(value);
}

/// Functions that all types of a C++ type share.
template <class T>
class Plain : public Type {
 public:
  bool is_same(const void* a, const void* b) const override {
    return as_value<T>(a) == as_value<T>(b);
  }
};

void add_limits(const Notes& notes, Schema& schema) {
  if (notes.least) schema["minimum"] = *notes.least;
  if (notes.most) schema["maximum"] = *notes.most;
}

void add_text_limits(const Notes& notes, Schema& schema) {
  if (notes.max_length != 0) schema["maxLength"] = notes.max_length;
  if (notes.pattern != nullptr) schema["pattern"] = notes.pattern;
}

class Text final : public Plain<std::string> {
 public:
  /// `schema`: the name in the OpenAPI document; empty: a plain string.
  explicit Text(std::string_view schema) : schema_(schema) {}

  void write(JsonWriter& json, const void* value, Form) const override {
    json.text(as_value<std::string>(value));
  }
  void read(const Input& input, void* value) const override {
    if (auto text = read_text(input)) as_target<std::string>(value) = *std::move(text);
  }
  Schema schema(const Notes& notes, Schemas&) const override {
    if (!schema_.empty()) return {{"$ref", "#/components/schemas/" + std::string(schema_)}};
    Schema schema{{"type", "string"}};
    add_text_limits(notes, schema);
    return schema;
  }

 private:
  std::string_view schema_;
};

class Boolean final : public Plain<bool> {
 public:
  void write(JsonWriter& json, const void* value, Form) const override {
    json.flag(as_value<bool>(value));
  }
  void read(const Input& input, void* value) const override {
    if (const auto flag = read_flag(input)) as_target<bool>(value) = *flag;
  }
  Schema schema(const Notes&, Schemas&) const override { return {{"type", "boolean"}}; }
  bool is_flag() const override { return true; }
};

/// A text for people. The API replaces bytes that are not UTF-8; the store keeps them.
class Prose final : public Plain<std::string> {
 public:
  void write(JsonWriter& json, const void* value, Form form) const override {
    const auto& text = as_value<std::string>(value);
    if (form == Form::kStore) {
      json.text(text);
    } else {
      json.prose(text);
    }
  }
  void read(const Input& input, void* value) const override {
    if (auto text = read_text(input)) as_target<std::string>(value) = *std::move(text);
  }
  Schema schema(const Notes&, Schemas&) const override { return {{"type", "string"}}; }
};

/// The value that `parse` reads from a user's text.
template <class Parsed>
std::optional<Parsed> typed(const Input& input, base::Result<Parsed> (*parse)(std::string_view)) {
  const auto text = read_text(input);
  if (!text) return std::nullopt;
  auto parsed = parse(*text);
  if (!parsed) {
    input.note(parsed.error().what);
    return std::nullopt;
  }
  return *parsed;
}

template <class Integer>
class Number final : public Plain<Integer> {
 public:
  explicit Number(As as) : as_(as) {}

  void write(JsonWriter& json, const void* value, Form form) const override {
    const auto number = static_cast<int64_t>(as_value<Integer>(value));
    if (as_ == As::kBytes && form == Form::kHuman) {
      json.text(base::exact_bytes(number));
    } else if (as_ == As::kPlain || as_ == As::kBytes) {
      json.number(number);
    } else {
      json.milli(number);
    }
  }

  void read(const Input& input, void* value) const override {
    if (const auto number = read_number(input)) {
      as_target<Integer>(value) = static_cast<Integer>(*number);
    }
  }

  Schema schema(const Notes& notes, Schemas&) const override {
    Schema schema{{"type", as_ == As::kPlain || as_ == As::kBytes ? "integer" : "number"}};
    if (as_ == As::kBytes) schema["format"] = "int64";
    add_limits(notes, schema);
    return schema;
  }

  std::string_view unit() const override { return as_ == As::kBytes ? "_bytes" : ""; }

 private:
  static constexpr int64_t kLow = std::numeric_limits<Integer>::min();
  static constexpr int64_t kHigh = std::numeric_limits<Integer>::max();

  std::optional<int64_t> read_number(const Input& input) const {
    const bool is_typed = input.form == Form::kHuman;
    switch (as_) {
      case As::kPlain:
      case As::kText:
      case As::kSentence:
      case As::kProse:
        break;
      case As::kBytes:
        if (is_typed) return typed<int64_t>(input, base::parse_bytes);
        break;
      case As::kCpus:
        return is_typed ? typed<int64_t>(input, base::parse_cpus) : read_milli(input, kLow, kHigh);
      case As::kMilli:
        return is_typed ? typed<int64_t>(input, base::parse_milli) : read_milli(input, kLow, kHigh);
      case As::kShare:
        return is_typed ? typed_share(input) : read_milli(input, kLow, kHigh);
    }
    return read_integer(input, kLow, kHigh);
  }

  static std::optional<int64_t> typed_share(const Input& input) {
    const auto milli = typed<int64_t>(input, base::parse_milli);
    if (!milli || (*milli > 0 && *milli < 1000)) return milli;
    input.note(base::format_milli(*milli) + " is out of range; give 0.001 to 0.999");
    return std::nullopt;
  }

  As as_;
};

/// A number of objects or a position in an order. In JSON, none exceeds int64_t.
class Count final : public Plain<uint64_t> {
 public:
  void write(JsonWriter& json, const void* value, Form) const override {
    json.number(static_cast<int64_t>(as_value<uint64_t>(value)));
  }
  void read(const Input& input, void* value) const override {
    if (const auto number = read_integer(input, 0, std::numeric_limits<int64_t>::max())) {
      as_target<uint64_t>(value) = static_cast<uint64_t>(*number);
    }
  }
  Schema schema(const Notes&, Schemas&) const override {
    return {{"type", "integer"}, {"minimum", 0}};
  }
};

class Real final : public Plain<double> {
 public:
  void write(JsonWriter& json, const void* value, Form) const override {
    json.real(as_value<double>(value));
  }
  void read(const Input& input, void* value) const override {
    if (const auto number = read_real(input)) as_target<double>(value) = *number;
  }
  Schema schema(const Notes& notes, Schemas&) const override {
    Schema schema{{"type", "number"}};
    add_limits(notes, schema);
    return schema;
  }
};

class Moment final : public Plain<base::Time> {
 public:
  void write(JsonWriter& json, const void* value, Form) const override {
    json.time(as_value<base::Time>(value));
  }
  void read(const Input& input, void* value) const override {
    if (const auto time = read_time(input)) as_target<base::Time>(value) = *time;
  }
  Schema schema(const Notes&, Schemas&) const override {
    return {{"$ref", "#/components/schemas/Time"}};
  }
};

template <class Value>
class Duration final : public Plain<Value> {
 public:
  void write(JsonWriter& json, const void* value, Form form) const override {
    const Value time = as_value<Value>(value);
    if (form != Form::kHuman) {
      json.number(time.count());
    } else {
      json.text(base::exact_duration(time));
    }
  }
  void read(const Input& input, void* value) const override {
    if (input.form == Form::kHuman) {
      if (const auto time = typed<std::chrono::milliseconds>(input, base::parse_duration)) {
        as_target<Value>(value) = std::chrono::duration_cast<Value>(*time);
      }
      return;
    }
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    if (const auto count = read_integer(input, -kMost - 1, kMost)) {
      as_target<Value>(value) = Value(*count);
    }
  }
  Schema schema(const Notes& notes, Schemas&) const override {
    Schema schema{{"type", "integer"}, {"format", "int64"}};
    add_limits(notes, schema);
    return schema;
  }
  std::string_view unit() const override {
    return std::is_same_v<Value, std::chrono::seconds> ? "_s" : "_ms";
  }
};

class Texts final : public Plain<std::vector<std::string>> {
 public:
  explicit Texts(std::string_view schema) : schema_(schema) {}

  void write(JsonWriter& json, const void* value, Form) const override {
    json.texts(as_value<std::vector<std::string>>(value));
  }
  void read(const Input& input, void* value) const override {
    auto& texts = as_target<std::vector<std::string>>(value);
    // In the human form, a single value is a list with one element.
    if (input.form == Form::kHuman && input.value.is_text()) {
      texts.assign(1, std::string(input.value.text()));
      return;
    }
    texts.clear();
    read_list(input, "texts", [&](const Input& element) {
      texts.push_back(read_text(element).value_or(std::string()));
    });
  }
  Schema schema(const Notes& notes, Schemas&) const override {
    Schema element{{"$ref", "#/components/schemas/" + std::string(schema_)}};
    if (notes.pattern != nullptr || notes.max_length != 0) {
      element = {{"type", "string"}};
      add_text_limits(notes, element);
    }
    return schema_of_list(std::move(element));
  }
  bool is_texts() const override { return true; }

 private:
  std::string_view schema_;
};

class Ints final : public Plain<std::vector<int>> {
 public:
  void write(JsonWriter& json, const void* value, Form) const override {
    json.numbers(as_value<std::vector<int>>(value));
  }
  void read(const Input& input, void* value) const override {
    auto& numbers = as_target<std::vector<int>>(value);
    numbers.clear();
    read_list(input, "whole numbers", [&](const Input& element) {
      constexpr int kMost = std::numeric_limits<int>::max();
      if (const auto number = read_integer(element, -int64_t{kMost} - 1, kMost)) {
        numbers.push_back(static_cast<int>(*number));
      }
    });
  }
  Schema schema(const Notes& notes, Schemas&) const override {
    Schema element{{"type", "integer"}};
    add_limits(notes, element);
    return schema_of_list(std::move(element));
  }
};

class Pairs final : public Plain<std::map<std::string, std::string>> {
 public:
  using Value = std::map<std::string, std::string>;

  void write(JsonWriter& json, const void* value, Form) const override {
    json.open('{');
    for (const auto& [key, text] : as_value<Value>(value)) json.key(key).text(text);
    json.close('}');
  }
  void read(const Input& input, void* value) const override {
    if (!input.value.is_object()) {
      return input.expected(input.form == Form::kHuman ? "a map" : "an object of texts");
    }
    auto& pairs = as_target<Value>(value);
    // A job file adds to the variables inherited from the shell.
    if (input.form != Form::kHuman) pairs.clear();
    size_t left = input.items_to_read();
    for (const record::Value& text : input.value) {
      if (left-- == 0 || input.has_all_faults()) return;
      const Path path(input.path, text.name());
      set_pair(std::string(text.name()), input.at(text, path), value);
    }
  }
  void set_pair(const std::string& key, const Input& input, void* value) const override {
    if (input.form == Form::kHuman && input.value.is_null()) {
      return input.note("has no value; write \"\" for an empty one");
    }
    if (auto text = read_text(input)) as_target<Value>(value)[key] = *std::move(text);
  }
  Schema schema(const Notes&, Schemas&) const override {
    return {{"type", "object"}, {"additionalProperties", {{"$ref", "#/components/schemas/Text"}}}};
  }
  bool is_pairs() const override { return true; }
};

class Ignored final : public Type {
 public:
  void write(JsonWriter&, const void*, Form) const override {}
  void read(const Input&, void*) const override {}
  bool is_same(const void*, const void*) const override { return true; }
  bool is_absent(const void*) const override { return true; }
  Schema schema(const Notes&, Schemas&) const override { return Schema::object(); }
};

class Group final : public Type {
 public:
  explicit Group(const Table& table) : table_(table) {}
  void write(JsonWriter& json, const void* record, Form form) const override {
    table_.write(json, record, form);
  }
  void read(const Input& input, void* record) const override { table_.read(input, record); }
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const Notes&, Schemas& schemas) const override {
    return schema_of_table(table_, schemas);
  }
  const Table* table() const override { return &table_; }

 private:
  const Table& table_;
};

template <class T, class... Arguments>
std::shared_ptr<const Type> shared(Arguments... arguments) {
  return shared_type(std::make_unique<const T>(arguments...));
}

/// The number of a word; nullptr: the word is unknown.
const int* number_in(const std::vector<Named<int>>& words, std::string_view text) {
  for (const auto& [number, word] : words) {
    if (word == text) return &number;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const Type> shared_type(std::unique_ptr<const Type> type) {
  return type;
}

std::shared_ptr<const Type> text_type(As as) {
  if (as == As::kProse) return shared<Prose>();
  return shared<Text>(as == As::kText ? "Text" : as == As::kSentence ? "Sentence" : "");
}
std::shared_ptr<const Type> flag_type() {
  return shared<Boolean>();
}
std::shared_ptr<const Type> int_type(As as) {
  return shared<Number<int>>(as);
}
std::shared_ptr<const Type> int64_type(As as) {
  return shared<Number<int64_t>>(as);
}
std::shared_ptr<const Type> count_type() {
  return shared<Count>();
}
std::shared_ptr<const Type> real_type() {
  return shared<Real>();
}
std::shared_ptr<const Type> time_type() {
  return shared<Moment>();
}
std::shared_ptr<const Type> duration_type() {
  return shared<Duration<std::chrono::milliseconds>>();
}
std::shared_ptr<const Type> seconds_type() {
  return shared<Duration<std::chrono::seconds>>();
}
std::shared_ptr<const Type> texts_type(As as) {
  return shared<Texts>(as == As::kSentence ? "Sentence" : "Text");
}
std::shared_ptr<const Type> ints_type() {
  return shared<Ints>();
}
std::shared_ptr<const Type> pairs_type() {
  return shared<Pairs>();
}

Row row_of(const char* name, const Notes& notes, std::shared_ptr<const Type> type,
           const void* (*member)(const void* record)) {
  std::string wire_name = name + std::string(type->unit());
  return {.name = name,
          .wire_name = std::move(wire_name),
          .notes = notes,
          .type = std::move(type),
          .member = member};
}

Row row_of_record(const char* name, const Notes& notes, std::shared_ptr<const Type> type) {
  Row row = row_of(name, notes, std::move(type), [](const void* record) { return record; });
  row.notes.kept = Kept::kSentOnly;
  row.notes.sent = Sent::kAlways;
  return row;
}

Row ignored(const char* name, const Notes& notes) {
  return row_of(name, notes, shared<Ignored>(), [](const void* record) { return record; });
}

Row grouped(const char* name, const Table& table, const Notes& notes) {
  return row_of(name, notes, shared_type(std::make_unique<const Group>(table)),
                [](const void* record) { return record; });
}

void WordsType::add(Numbered& words, int value, std::string_view name) {
  words.emplace_back(value, name);
}

void WordsType::write(JsonWriter& json, const void* value, Form) const {
  const int number = number_of(value);
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& named) { return named.first == number; });
  json.text(found == values_.end() ? "?" : found->second);
}

void WordsType::read(const Input& input, void* value) const {
  for (const auto& [number, alias] : aliases_) {
    if (input.is_typed(alias)) return set(value, number);
  }
  const int* number = number_in(values_, input.value.is_text() ? input.value.text() : "");
  if (number != nullptr) return set(value, *number);
  read_choice(input, words());  // reports the fault
}

bool WordsType::is_same(const void* a, const void* b) const {
  return number_of(a) == number_of(b);
}

Schema WordsType::schema(const Notes&, Schemas& schemas) const {
  return schema_of_words(schema_, help_, words(), schemas);
}

std::vector<std::string> WordsType::words() const {
  std::vector<std::string> words;
  for (const auto& [number, word] : values_) words.emplace_back(word);
  return words;
}

void read_pairs(const Input& input,
                const std::function<void(const std::string& key, const Input& value)>& add) {
  if (!input.value.is_object()) {
    return input.expected(input.form == Form::kHuman ? "a map" : "an object");
  }
  size_t left = input.items_to_read();
  for (const Value& value : input.value) {
    if (left-- == 0 || input.has_all_faults()) return;
    const Path path(input.path, value.name());
    add(std::string(value.name()), input.at(value, path));
  }
}

void read_list(const Input& input, std::string_view of,
               const std::function<void(const Input& element)>& add) {
  if (!input.value.is_list()) {
    return input.expected(input.form == Form::kHuman ? "a list" : "a list of " + std::string(of));
  }
  const size_t count = input.items_to_read();
  size_t index = 0;
  for (const Value& element : input.value) {
    if (index == count || input.has_all_faults()) return;
    const Path path(input.path, index++);
    add(input.at(element, path));
  }
}

void read_short(const Input& input, Shorthand shorthand, const Type& type, void* value) {
  if (shorthand == nullptr || input.form != Form::kHuman || !input.value.is_text()) {
    return type.read(input, value);
  }
  const size_t faults = input.faults.size();
  const ValueTree written_out = ValueTree::of(shorthand(input));
  if (input.faults.size() == faults) type.read(input.at(written_out.root(), input.path), value);
}

}  // namespace muster::record
