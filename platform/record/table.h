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
// table_of() is found by the type of its argument, so it is in the namespace of the type. A
// member whose type has a table is a document within the document. record/field.h makes rows.
//
// A row has the place of its member and the type of its values (record/type.h). Only the thin
// functions at the end are templates. Tables are made once and never changed; every thread may read
// them.
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
  kOnWire,  ///< required in the wire form; a job file may leave it out
};

/// When a field is sent.
enum class Sent {
  kIfSet,   ///< where it differs from its default
  kAlways,  ///< an empty optional is left out, or is null where Notes::null gives null a meaning
};

/// The handling of a field of the wire form that no row has.
enum class Unknown {
  kRefused,  ///< it is a fault, which names the nearest field
  kIgnored,  ///< a newer peer may send more fields
};

/// In which documents a field is, beside job files and flags.
enum class Kept {
  kEverywhere,
  kStoreOnly,  ///< never sent: a key, a hash
  kSentOnly,   ///< computed when it is sent, and not stored
};

/// How a shell completes the value of a flag.
enum class Offer { kNothing, kFiles, kFolders, kProjects };

/// A flag of the commands that submit a job.
struct Flag {
  const char* name = nullptr;    ///< "--start-timeout"; nullptr: the field has no flag
  const char* letter = nullptr;  ///< "-n"
  const char* value = nullptr;   ///< "TIME"; nullptr: the flag has no value
  const char* help = nullptr;    ///< nullptr: the help of the field
  const char* means = nullptr;   ///< the value that a flag without a value sets; nullptr: true
  Offer offer = Offer::kNothing;
  const char* kinds = nullptr;  ///< the kinds of jobs that have the flag: "mpi torch"; nullptr: all
  /// The words that the flag accepts, if the field is not an enumeration.
  const std::vector<std::string>& (*choices)() = nullptr;
  /// The command reads the flag with its own code, because it sets more than this field. The flag
  /// still appears in the field's faults.
  bool by_hand = false;
};

/// Expands a short form of a value in a job file: "data:/data:ro". Notes a fault and returns null
/// if the text is not a short form.
using Shorthand = Json (*)(const Input& text);
/// Converts spellings of a value to one, after it was read.
using Normalise = void (*)(void* member);

/// The properties of a field beside its name and its member.
struct Notes {
  const char* help = "";  ///< one phrase, for OpenAPI and for a flag without its own help
  Need need = Need::kOptional;
  Sent sent = Sent::kIfSet;
  std::optional<int64_t> least = {};  ///< of numbers, in the wire form
  std::optional<int64_t> most = {};
  size_t max_length = 0;          ///< of texts; 0: no limit
  const char* pattern = nullptr;  ///< ECMA 262
  const char* schema = nullptr;   ///< JSON with more properties of the schema: {"minItems": 1}
  size_t most_items = 0;          ///< of lists and maps: further elements are a fault; 0: no limit
  Flag flag = {};
  /// Whether the fields within have their flags here: several fields may share a type, but only one
  /// of them has its flags.
  bool gives_inner_flags = false;
  Shorthand shorthand = nullptr;
  const char* short_forms = nullptr;  ///< the fault for a text that is not a short form
  Normalise normalise = nullptr;
  Kept kept = Kept::kEverywhere;
  /// The meaning of null on the wire, if it differs from absence: "no bound in a limit". The member
  /// is an optional, which null empties; in a request an optional of an optional, so that an absent
  /// field changes nothing. nullptr: null and absence are the same.
  const char* null = nullptr;
};

struct Row {
  std::string name;       ///< "start_timeout": in job files, --set and faults of validation
  std::string wire_name;  ///< "start_timeout_ms": with the unit of the number
  Notes notes;
  std::shared_ptr<const Type> type;
  const void* (*member)(const void* record) = nullptr;
  /// Of a row that another table lends: the record of that table within this one's.
  const void* (*lent)(const void* record) = nullptr;

  const std::string& name_in(Form form) const { return form == Form::kHuman ? name : wire_name; }
  bool is_in(Form form) const {
    return notes.kept != (form == Form::kStore ? Kept::kSentOnly : Kept::kStoreOnly);
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
  /// Called after the rows have been read, for values that follow from several fields.
  using Complete = void (*)(const Input& input, void* record);

  /// `defaults`: a record as its type makes it; outlives the table.
  Table(std::string name, std::vector<Row> rows, const void* defaults, const char* help);

  const std::string& name() const { return name_; }
  const char* help() const { return help_; }
  const std::vector<Row>& rows() const { return rows_; }
  const void* defaults() const { return defaults_; }
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
  void report_unknown(const Input& input, std::string_view key,
                      const std::vector<std::string>& known) const;

  std::string name_;
  std::vector<Row> rows_;
  const void* defaults_;
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

/// Parses `text` and reads it over `record`. kInvalid: the text is not JSON, or has faults. `noun`
/// names the document in errors ("spec").
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
/// Faults are noted under `key`. The fault of an unknown key names the nearest key.
void assign(const Table& table, void* record, std::string_view key, const Value& value,
            std::vector<base::Fault>& faults);

/// The path of a field as documents of this form name it: "resources.memory" is
/// "resources.memory_bytes" on the wire. `path` may have the names of either form. From the first
/// part that no row has, the path is kept.
std::string path_in(Form form, const Table& table, std::string_view path);

/// `error`, whose faults name the fields of `table` as documents of this form do.
base::Error with_names_in(Form form, const Table& table, base::Error error);

/// Validates a value in which the fields of the faults `unread` could not be read, and have their
/// defaults. Returns faults by the names of job files. May add fields to `unread` whose checks
/// depend on such a field.
template <class T>
using Validation =
    std::function<std::vector<base::Fault>(const T& value, std::vector<base::Fault>& unread)>;

/// Adds to the faults of a document of `table` those that validation finds in the fields that could
/// be read, up to kMostFaults together. Faults within or around an unread field are left out, so that
/// each is the user's.
void add_validation(
    std::vector<base::Fault>& faults, const Table& table,
    const std::function<std::vector<base::Fault>(std::vector<base::Fault>& unread)>& validate);

/// As read_text_into(). If the text has faults, it has those of `validate` as well.
base::Result<void> read_text_into(
    std::string_view text, std::string_view noun, const Table& table, void* record,
    const std::function<std::vector<base::Fault>(std::vector<base::Fault>& unread)>& validate);

/// As from_json(). If the text has faults, it has those of `validate` as well; a value that could be
/// read is not validated.
template <class T>
base::Result<T> from_json(std::string_view text, std::string_view noun,
                          const Validation<T>& validate) {
  T value;
  MUSTER_CHECK(
      read_text_into(text, noun, table_for<T>(), &value,
                     [&](std::vector<base::Fault>& unread) { return validate(value, unread); }));
  return value;
}

/// A row that can be reached from a table without passing a list or a map.
struct Place {
  std::string path;  ///< "scheduling.priority"
  const Row* row;
  bool has_flag;  ///< the record has the flag of the row
};
std::vector<Place> places_of(const Table& table);

}  // namespace muster::record
