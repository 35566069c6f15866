// Makes the rows of a table from members: record::field<&JobSpec::workers>("workers", {...}).
//
// For the .cc files that hold tables, which pay for nlohmann/json.hpp; others include
// record/table.h.
#pragma once

#include <concepts>
#include <functional>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "record/type.h"
#include "record/words.h"

namespace muster::record {

template <class T>
concept HasTable = requires(const T* type) {
  { table_of(type) } -> std::same_as<const Table&>;
};

/// words_of(const Kind*) is found in the namespace of the enumeration.
template <class T>
concept HasWords = requires(const T* type) {
  { words_of(type) } -> std::convertible_to<Words<T>>;
};

template <class T>
struct MemberOf;
template <class Record, class Member>
struct MemberOf<Member Record::*> {
  using RecordType = Record;
  using MemberType = Member;
};

template <class T>
std::shared_ptr<const Type> type_for(As as);

/// Takes over a type. Compiled once, unlike std::make_shared() for each type.
std::shared_ptr<const Type> shared_type(std::unique_ptr<const Type> type);

/// A document within a document.
template <class T>
class TableType final : public Type {
 public:
  void write(JsonWriter& json, const void* value, Form form) const override {
    table()->write(json, value, form);
  }
  void read(const Input& input, void* value) const override {
    // A stored document omits the defaults of the type, which may differ from those of the member.
    if (input.form == Form::kStore) *static_cast<T*>(value) = T();
    table()->read(input, value);
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const T*>(a) == *static_cast<const T*>(b);
  }
  Schema schema(const Notes& notes, Schemas& schemas) const override;
  const Table* table() const override { return &table_for<T>(); }
};

Schema schema_of_table(const Table& table, Schemas& schemas);
Schema schema_of_words(std::string_view name, std::string_view help,
                       const std::vector<std::string>& words, Schemas& schemas);
Schema schema_of_list(Schema element);
Schema schema_of_prose();

template <class T>
Schema TableType<T>::schema(const Notes&, Schemas& schemas) const {
  return schema_of_table(*table(), schemas);
}

/// An enumeration, by its words; only the conversion from and to a number depends on its type.
class WordsType : public Type {
 public:
  void write(JsonWriter& json, const void* value, Form form) const override;
  void read(const Input& input, void* value) const override;
  bool is_same(const void* a, const void* b) const override;
  Schema schema(const Notes& notes, Schemas& schemas) const override;
  std::vector<std::string> words() const override;

 protected:
  template <class E>
  explicit WordsType(const Words<E>& words) : schema_(words.schema), help_(words.help) {
    for (const auto& [value, name] : words.values) add(values_, static_cast<int>(value), name);
    for (const auto& [value, name] : words.aliases) add(aliases_, static_cast<int>(value), name);
  }

 private:
  using Numbered = std::vector<Named<int>>;

  static void add(Numbered& words, int value, std::string_view name);
  virtual int number_of(const void* value) const = 0;
  virtual void set(void* value, int number) const = 0;

  std::string_view schema_;
  std::string_view help_;
  Numbered values_;
  Numbered aliases_;
};

template <class E>
class EnumType final : public WordsType {
  static_assert(sizeof(E) <= sizeof(int));

 public:
  EnumType() : WordsType(words_of(static_cast<const E*>(nullptr))) {}

 private:
  int number_of(const void* value) const override {
    return static_cast<int>(*static_cast<const E*>(value));
  }
  void set(void* value, int number) const override {
    *static_cast<E*>(value) = static_cast<E>(number);
  }
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
class OptionalType final : public Type {
 public:
  explicit OptionalType(As as) : inner_(type_for<T>(as)) {}
  void write(JsonWriter& json, const void* value, Form form) const override {
    const auto& optional = *static_cast<const std::optional<T>*>(value);
    if (optional) {
      inner_->write(json, &*optional, form);
    } else {
      json.null();
    }
  }
  void read(const Input& input, void* value) const override {
    if (input.is_null()) return set_null(*static_cast<std::optional<T>*>(value));
    T read{};
    const size_t faults = input.faults.size();
    inner_->read(input, &read);
    if (input.faults.size() == faults) *static_cast<std::optional<T>*>(value) = std::move(read);
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const std::optional<T>*>(a) == *static_cast<const std::optional<T>*>(b);
  }
  Schema schema(const Notes& notes, Schemas& schemas) const override {
    return inner_->schema(notes, schemas);
  }
  std::string_view unit() const override { return inner_->unit(); }
  bool is_absent(const void* value) const override {
    return !*static_cast<const std::optional<T>*>(value);
  }
  const Table* table() const override { return inner_->table(); }
  const Table* table_of_values() const override { return inner_->table_of_values(); }
  std::vector<std::string> words() const override { return inner_->words(); }
  bool is_flag() const override { return inner_->is_flag(); }

 private:
  /// An outer optional with an empty inner one means "set it to nothing", unlike absence, "do not
  /// change it".
  static void set_null(std::optional<T>& value) {
    if constexpr (kIsOptional<T>) {
      value.emplace();
    } else {
      value.reset();
    }
  }

  std::shared_ptr<const Type> inner_;
};

/// Calls `add` for each element of a list, until the document has all faults that are reported. In
/// all forms a list replaces the previous elements.
void read_list(const Input& input, std::string_view of,
               const std::function<void(const Input& element)>& add);

template <class T>
class ListType final : public Type {
 public:
  explicit ListType(Shorthand shorthand) : inner_(type_for<T>(As::kPlain)), shorthand_(shorthand) {}
  void write(JsonWriter& json, const void* value, Form form) const override {
    json.open('[');
    for (const T& each : *static_cast<const std::vector<T>*>(value)) {
      inner_->write(json, &each, form);
    }
    json.close(']');
  }
  void read(const Input& input, void* value) const override {
    auto& list = *static_cast<std::vector<T>*>(value);
    list.clear();
    read_list(input, inner_->table() != nullptr ? "objects" : "texts",
              [&](const Input& element) { read_element(element, list.emplace_back()); });
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const std::vector<T>*>(a) == *static_cast<const std::vector<T>*>(b);
  }
  Schema schema(const Notes&, Schemas& schemas) const override {
    return schema_of_list(inner_->schema({}, schemas));
  }
  const Type* element() const override { return inner_.get(); }

 private:
  void read_element(const Input& input, T& into) const;

  std::shared_ptr<const Type> inner_;
  Shorthand shorthand_;
};

/// Calls `add` for each member of an object, until the document has all faults that are reported.
void read_pairs(const Input& input,
                const std::function<void(const std::string& key, const Input& value)>& add);
Schema schema_of_pairs(Schema value);
/// `schema`, or null.
Schema nullable(Schema schema);

/// A map of names to values of one type.
template <class T>
class NamedType final : public Type {
 public:
  using Value = std::map<std::string, T>;

  void write(JsonWriter& json, const void* value, Form form) const override {
    json.open('{');
    for (const auto& [key, each] : *static_cast<const Value*>(value)) {
      json.key(key);
      inner_->write(json, &each, form);
    }
    json.close('}');
  }
  void read(const Input& input, void* value) const override {
    auto& pairs = *static_cast<Value*>(value);
    pairs.clear();
    read_pairs(input,
               [&](const std::string& key, const Input& each) { inner_->read(each, &pairs[key]); });
  }
  bool is_same(const void* a, const void* b) const override {
    return *static_cast<const Value*>(a) == *static_cast<const Value*>(b);
  }
  Schema schema(const Notes&, Schemas& schemas) const override {
    Schema value = inner_->schema({}, schemas);
    return schema_of_pairs(kIsOptional<T> ? nullable(std::move(value)) : std::move(value));
  }
  const Table* table_of_values() const override { return inner_->table(); }

 private:
  std::shared_ptr<const Type> inner_ = type_for<T>(As::kPlain);
};

/// A text that is computed from the whole record when it is sent. `take`, if not nullptr, gets the
/// text that a peer sent, before the later rows are read.
template <class Record, std::string (*make)(const Record&),
          void (*take)(Record&, std::string) = nullptr>
class ComputedType final : public Type {
 public:
  void write(JsonWriter& json, const void* record, Form) const override {
    json.prose(make(*static_cast<const Record*>(record)));
  }
  void read(const Input& input, void* record) const override {
    // As types: with sanitizers, gcc does not compare pointers to functions at compile time.
    using Take = void (*)(Record&, std::string);
    using Given = std::integral_constant<Take, take>;
    if constexpr (!std::is_same_v<Given, std::integral_constant<Take, nullptr>>) {
      if (auto text = read_text(input)) take(*static_cast<Record*>(record), *std::move(text));
    }
  }
  bool is_same(const void*, const void*) const override { return false; }
  Schema schema(const Notes&, Schemas&) const override { return schema_of_prose(); }
};

/// Reads a value by `type`, after `shorthand` has expanded a text.
void read_short(const Input& input, Shorthand shorthand, const Type& type, void* value);

template <class T>
void ListType<T>::read_element(const Input& input, T& into) const {
  read_short(input, shorthand_, *inner_, &into);
}

template <class T>
inline constexpr bool kIsNamed = false;
template <class T>
inline constexpr bool kIsNamed<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

template <class T>
std::shared_ptr<const Type> type_for(As as, Shorthand shorthand) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text_type(as);
  } else if constexpr (std::is_same_v<T, bool>) {
    return flag_type();
  } else if constexpr (std::is_same_v<T, int>) {
    return int_type(as);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return int64_type(as);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return count_type();
  } else if constexpr (std::is_same_v<T, double>) {
    return real_type();
  } else if constexpr (std::is_same_v<T, base::Time>) {
    return time_type();
  } else if constexpr (std::is_same_v<T, std::chrono::milliseconds>) {
    return duration_type();
  } else if constexpr (std::is_same_v<T, std::chrono::seconds>) {
    return seconds_type();
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return texts_type(as);
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return ints_type();
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    return pairs_type();
  } else if constexpr (kIsOptional<T>) {
    return shared_type(std::make_unique<OptionalType<typename T::value_type>>(as));
  } else if constexpr (kIsList<T>) {
    return shared_type(std::make_unique<ListType<typename T::value_type>>(shorthand));
  } else if constexpr (kIsNamed<T>) {
    return shared_type(std::make_unique<NamedType<typename T::mapped_type>>());
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(HasWords<T>, "an enumeration needs words_of()");
    return shared_type(std::make_unique<EnumType<T>>());
  } else {
    static_assert(HasTable<T>, "a type needs a table_of()");
    return shared_type(std::make_unique<TableType<T>>());
  }
}

template <class T>
std::shared_ptr<const Type> type_for(As as) {
  return type_for<T>(as, nullptr);
}

/// A row from its parts. The wire form of `name` appends the unit of `type`.
Row row_of(const char* name, const Notes& notes, std::shared_ptr<const Type> type,
           const void* (*member)(const void* record));

template <auto Member>
const void* member_in(const void* record) {
  return &(static_cast<const typename MemberOf<decltype(Member)>::RecordType*>(record)->*Member);
}

/// A row for the member. `name` is its name in job files; the wire form appends the unit.
template <auto Member>
Row field(const char* name, const Notes& notes = {}, As as = As::kPlain) {
  using MemberType = typename MemberOf<decltype(Member)>::MemberType;
  return row_of(name, notes,
                type_for<MemberType>(as, kIsList<MemberType> ? notes.shorthand : nullptr),
                member_in<Member>);
}

/// A row whose type reads and writes the whole record. It is only sent.
Row row_of_record(const char* name, const Notes& notes, std::shared_ptr<const Type> type);

/// A row that is only sent: the text that `make` computes from the record.
template <class Record, std::string (*make)(const Record&),
          void (*take)(Record&, std::string) = nullptr>
Row computed(const char* name, const Notes& notes = {}) {
  return row_of_record(name, notes,
                       shared_type(std::make_unique<ComputedType<Record, make, take>>()));
}

/// A field that a request may have, so that a document that the server sent can be sent back. It is
/// not read.
Row ignored(const char* name, const Notes& notes = {});

/// An object in the document whose fields are members of the record itself. `table` outlives the
/// row.
Row grouped(const char* name, const Table& table, const Notes& notes = {});

/// A row with a Type of its own.
template <auto Member>
Row typed_field(const char* name, std::shared_ptr<const Type> type, const Notes& notes = {}) {
  return row_of(name, notes, std::move(type), member_in<Member>);
}

/// A row for a member of a member, as if it were a field of the record itself.
template <auto Outer, auto Inner>
Row nested_field(const char* name, const Notes& notes = {}, As as = As::kPlain) {
  using Of = MemberOf<decltype(Outer)>;
  Row row = field<Inner>(name, notes, as);
  row.member = [](const void* record) -> const void* {
    return &(static_cast<const typename Of::RecordType*>(record)->*Outer.*Inner);
  };
  return row;
}

/// The rows of T, the type of the member, as if its fields were the record's own.
template <auto Member>
std::vector<Row> rows_of_member(std::vector<Row> rows) {
  for (Row& row : rows) row.lent = member_in<Member>;
  return rows;
}

template <class T>
Table table(std::string name, std::vector<Row> rows, const char* help = "") {
  static const T defaults{};
  return Table(std::move(name), std::move(rows), &defaults, help);
}

}  // namespace muster::record
