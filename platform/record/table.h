// One description of a type: a table with a row for each field. From the rows come the JSON of the
// API both ways, the documents of the store, the keys of job files and of --set, command-line
// flags, and the schemas of the OpenAPI document.
//
//   const record::Table& table_of(const Resources*) {
//     static const record::Table table = record::table<Resources>("Resources", {
//         field<&Resources::gpus>("gpus", {.help = "whole GPUs", .least = 0}),
//         field<&Resources::memory_bytes>("memory", {.help = "of a task"}, As::kBytes),
//     });
//     return table;
//   }
//
// table_of() is found by the type of its argument, so it stands in the namespace of the type. A
// member whose type has a table is a document within the document. record/field.h makes rows.
//
// A row knows where its member lies and what its values look like (record/type.h); nothing here is
// a template but the thin functions at the end. Tables are made once, are never changed, and may be
// read by any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/input.h"
#include "record/json_writer.h"

namespace muster::record {

class Type;

enum class Need {
  kOptional,
  kRequired,
  kOnWire,  ///< where a program sends it; people may leave it out of a job file
};

/// When a field is written.
enum class Told {
  kIfSet,   ///< where it differs from its default
  kAlways,  ///< an empty optional is left out, or is null where Notes::null gives null a meaning
};

/// What happens to a field of the wire form that no row has.
enum class Unknown {
  kRefused,  ///< it is a fault, which names the nearest field
  kIgnored,  ///< a newer peer may send more fields
};

/// Where a field stands, beside job files and flags.
enum class Kept {
  kEverywhere,
  kStoreOnly,  ///< never told: a key, a hash
  kToldOnly,   ///< made when it is told, and not kept
};

/// What a shell may complete the value of a flag with.
enum class Offer { kNothing, kFiles, kFolders, kProjects };

/// A flag of the commands that submit a job.
struct Flag {
  const char* name = nullptr;    ///< "--start-timeout"; nullptr: the field has none
  const char* letter = nullptr;  ///< "-n"
  const char* value = nullptr;   ///< "TIME"; nullptr: it takes none
  const char* help = nullptr;    ///< nullptr: that of the field
  const char* means = nullptr;   ///< what the flag without a value sets; nullptr: true
  Offer offer = Offer::kNothing;
  const char* kinds = nullptr;  ///< the kinds of jobs that have it: "mpi torch"; nullptr: all
  /// The words it takes, where they are no enumeration's.
  const std::vector<std::string>& (*choices)() = nullptr;
  /// The flag means more than the value of this field: its command reads it. It still names the
  /// field's faults.
  bool by_hand = false;
};

/// A short way to write a value in a job file, turned into the long one: "data:/data:ro". Gives
/// null where the text is none that it knows, and a fault is noted then.
using Shorthand = Json (*)(const Input& text);
/// Makes one spelling of several, after a value was read.
using Normalise = void (*)(void* member);

/// What a row says of a field beside its name and its member.
struct Notes {
  const char* help = "";  ///< one phrase; OpenAPI and, without another, the flag print it
  Need need = Need::kOptional;
  Told told = Told::kIfSet;
  std::optional<int64_t> least = {};  ///< of numbers, as the wire has them
  std::optional<int64_t> most = {};
  size_t max_length = 0;          ///< of texts; 0: nothing is said
  const char* pattern = nullptr;  ///< ECMA 262
  const char* schema = nullptr;   ///< JSON, what else the OpenAPI document says: {"maxItems": 100}
  Flag flag = {};
  /// The flags of the rows within: a type that several fields have gives its flags for one of them.
  bool gives_inner_flags = false;
  Shorthand shorthand = nullptr;
  const char* short_forms = nullptr;  ///< what a fault says where the shorthand knows none
  Normalise normalise = nullptr;
  Kept kept = Kept::kEverywhere;
  /// What null means on the wire, if that differs from absence: "no bound in a limit". The member
  /// is an optional, which null empties; in a request an optional of an optional, so that an absent
  /// field changes nothing. nullptr: null and absence are the same.
  const char* null = nullptr;
};

struct Row {
  std::string name;       ///< "start_timeout": in job files, for --set, in faults of validation
  std::string wire_name;  ///< "start_timeout_ms": with the unit that the number is in
  Notes notes;
  std::shared_ptr<const Type> type;
  const void* (*member)(const void* record) = nullptr;
  /// Of a row that another table lends: the record of that table within this one's.
  const void* (*lent)(const void* record) = nullptr;

  const std::string& name_in(Form form) const { return form == Form::kHuman ? name : wire_name; }
  bool is_in(Form form) const {
    return notes.kept != (form == Form::kStore ? Kept::kToldOnly : Kept::kStoreOnly);
  }
  const void* member_of(const void* record) const {
    return member(lent == nullptr ? record : lent(record));
  }
  void* member_of(void* record) const {
    return const_cast<void*>(member_of(static_cast<const void*>(record)));
  }
};

class Table {
 public:
  /// After the rows have been read: what follows from several of them, and from which were given.
  using Complete = void (*)(const Input& input, void* record);

  Table(std::string name, std::vector<Row> rows, std::shared_ptr<const void> defaults,
        const char* help);

  const std::string& name() const { return name_; }
  const char* help() const { return help_; }
  const std::vector<Row>& rows() const { return rows_; }
  const void* defaults() const { return defaults_.get(); }
  /// nullptr: no row has this name.
  const Row* find(std::string_view name, Form form) const;
  std::vector<std::string> names(Form form) const;

  bool is_default(const Row& row, const void* record) const;
  void write(JsonWriter& json, const void* record, Form form) const;
  /// Reads the fields that `input` has. A field that is absent, or null on the wire without a
  /// meaning of its own (Notes::null), keeps its value. See Unknown for a field that no row has.
  void read(const Input& input, void* record) const;

  /// A document that the server sends and never reads. Its schema lists the fields that are always
  /// there, and permits more fields.
  Table& as_answer(Unknown unknown = Unknown::kRefused) {
    is_answer_ = true;
    unknown_ = unknown;
    return *this;
  }
  bool is_answer() const { return is_answer_; }

  Table& with(Complete complete) {
    complete_ = complete;
    return *this;
  }

 private:
  bool is_left_out(const Row& row, const void* value, Form form) const;
  std::vector<const Value*> given_in(const Input& input) const;
  void report_unknown(const Input& input) const;
  void report_unknown(const Input& input, std::string_view key) const;

  std::string name_;
  std::vector<Row> rows_;
  std::shared_ptr<const void> defaults_;
  const char* help_;
  Complete complete_ = nullptr;
  bool is_answer_ = false;
  Unknown unknown_ = Unknown::kRefused;
};

template <class T>
const Table& table_for() {
  return table_of(static_cast<const T*>(nullptr));
}

template <class T>
void write(JsonWriter& json, const T& value, Form form = Form::kWire) {
  table_for<T>().write(json, &value, form);
}

template <class T>
std::string to_json(const T& value, Form form = Form::kWire) {
  std::string text;
  JsonWriter json(text);
  write(json, value, form);
  return text;
}

/// Parses `text` and reads it over `record`. kInvalid: it is no JSON, or has the faults that were
/// met; `noun` says what it ought to be ("spec").
base::Result<void> read_text_into(std::string_view text, std::string_view noun, const Table& table,
                                  void* record);
/// Reads {"NAME": [...]}. `add` makes room for one record of `table`.
base::Result<void> read_list_into(std::string_view text, std::string_view name, const Table& table,
                                  const std::function<void*()>& add);

template <class T>
void read(const Input& input, T& into) {
  table_for<T>().read(input, &into);
}

template <class T>
base::Result<T> from_json(std::string_view text, std::string_view noun) {
  T value;
  MUSTER_CHECK(read_text_into(text, noun, table_for<T>(), &value));
  return value;
}

/// {"NAME": [...]}: the API sends a list as an object with one field.
template <class T>
std::string list_to_json(std::string_view name, const std::vector<T>& records) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key(name).open('[');
  for (const T& each : records) write(json, each);
  json.close(']').close('}');
  return text;
}

template <class T>
base::Result<std::vector<T>> list_from_json(std::string_view text, std::string_view name) {
  std::vector<T> records;
  MUSTER_CHECK(read_list_into(text, name, table_for<T>(), [&] { return &records.emplace_back(); }));
  return records;
}

/// Sets the field at `key` ("scheduling.priority", "environment.LR") to a value in the human form.
/// Faults are noted under `key`; one that no row has names the nearest.
void assign(const Table& table, void* record, std::string_view key, const Value& value,
            std::vector<base::Fault>& faults);

/// Every row that is reached from `table` without passing a list or a map, with its path.
struct Place {
  std::string path;  ///< "scheduling.priority"
  const Row* row;
  bool has_flag;  ///< its flag is one of this record's
};
std::vector<Place> places_of(const Table& table);

}  // namespace muster::record
