// Reads the fields of a JSON object one by one, for the few documents without a table of fields.
// Notes every fault with the path of its field instead of stopping at the first.
//
//   Result<void> read = read_document(text, "page", [&](Fields& fields) {
//     fields.record("job", page.job, Need::kRequired);
//     fields.read("next", page.next);
//   });
//
// An absent or null field that is not required keeps its value. A field that is never read is an
// unknown field, and a fault. Not thread-safe. nlohmann's json stays inside the .cc files.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "record/table.h"

namespace muster::record {

class Fields {
 public:
  using Read = std::function<void(Fields&)>;

  /// `input` must be an object, and outlive the Fields.
  explicit Fields(const Input& input) : input_(input) {}

  /// Text, or {"base64": "..."} for bytes that are not UTF-8.
  void read(std::string_view name, std::string& into, Need need = Need::kOptional);
  void read(std::string_view name, int& into, Need need = Need::kOptional);
  void read(std::string_view name, int64_t& into, Need need = Need::kOptional);
  void read(std::string_view name, bool& into, Need need = Need::kOptional);
  void read(std::string_view name, double& into, Need need = Need::kOptional);
  void read(std::string_view name, base::Time& into, Need need = Need::kOptional);
  /// A whole number of milliseconds.
  void read(std::string_view name, std::chrono::milliseconds& into, Need need = Need::kOptional);
  void read(std::string_view name, std::vector<std::string>& into, Need need = Need::kOptional);
  void read(std::string_view name, std::vector<int>& into);
  void read(std::string_view name, std::map<std::string, std::string>& into);
  /// The same; null is a valid value.
  void read(std::string_view name, std::map<std::string, std::optional<std::string>>& into,
            Need need);
  template <class T>
  void read(std::string_view name, std::optional<T>& into) {
    if (!has(name)) return;
    T value{};
    read(name, value);
    into = std::move(value);
  }

  /// A decimal number, in thousandths: 0.5 is 500. More than three decimals are a fault.
  void read_milli(std::string_view name, int64_t& into, Need need = Need::kOptional);
  void read_milli(std::string_view name, int& into, Need need = Need::kOptional);

  /// A value of an enumeration, by its name from `name_of`.
  template <class Enum>
  void choose(std::string_view name, Enum& into, std::initializer_list<Enum> values,
              std::string_view (*name_of)(Enum), Need need = Need::kOptional) {
    std::vector<std::string> names;
    for (const Enum value : values) names.emplace_back(name_of(value));
    if (const auto index = choice(name, names, need)) into = values.begin()[*index];
  }

  /// A record with a table, read over its present value.
  template <class T>
  void record(std::string_view name, T& into, Need need = Need::kOptional) {
    record(name, table_for<T>(), &into, need);
  }
  template <class T>
  void record(std::string_view name, std::optional<T>& into) {
    if (has(name)) record(name, table_for<T>(), &into.emplace(), Need::kOptional);
  }
  template <class T>
  void records(std::string_view name, std::vector<T>& into, Need need = Need::kOptional) {
    each_value(
        name, [&](const Input& element) { table_for<T>().read(element, &into.emplace_back()); },
        need);
  }
  void each_value(std::string_view name, const std::function<void(const Input&)>& read, Need need);
  /// The whole object is a record of `table`.
  void record(const Table& table, void* into);

  /// Bytes that a field holds as base64 in a plain string.
  void read_base64(std::string_view name, std::string& into);
  /// An object in the object.
  void object(std::string_view name, const Read& read, Need need = Need::kOptional);
  /// A list of objects: `read` is called for each.
  void each(std::string_view name, const Read& read, Need need = Need::kOptional);

  /// An object of objects: `read` is called for each with its key, and with nullptr for null.
  using ReadEntry = std::function<void(const std::string& key, Fields*)>;
  void entries(std::string_view name, const ReadEntry& read);

  bool has(std::string_view name);
  /// The value of the field; nullptr: absent or null.
  const Value* value(std::string_view name) { return find(name, Need::kOptional); }
  /// Whether the field is present and null, for the few fields that distinguish it from absence.
  bool is_null(std::string_view name);
  /// Accepts the field without reading it.
  void ignore(std::string_view name) { known_.emplace_back(name); }
  /// Notes a fault that the caller found.
  void fault(std::string_view name, std::string what);
  /// Notes each field that was not read. Call it last.
  void refuse_unknown();

 private:
  const Value* find(std::string_view name, Need need);
  template <class Reader, class... More>
  auto read_by(std::string_view name, Need need, Reader reader, const More&... more);
  std::optional<size_t> choice(std::string_view name, const std::vector<std::string>& names,
                               Need need);
  void record(std::string_view name, const Table& table, void* into, Need need);

  const Input input_;
  bool is_all_known_ = false;
  std::vector<std::string> known_;
};

/// kInvalid: "the spec has 2 faults". `noun` names the document.
base::Error faulty_document(std::string_view noun, std::vector<base::Fault> faults);

/// Parses `text` and reads its object. kInvalid: the text is not JSON, or `read` noted faults.
/// `noun` names the document in errors ("spec").
base::Result<void> read_document(std::string_view text, std::string_view noun,
                                 const Fields::Read& read, Unknown unknown = Unknown::kRefused);
/// The same for a parsed value.
base::Result<void> read_document(const Value& document, std::string_view noun,
                                 const Fields::Read& read, Unknown unknown = Unknown::kRefused,
                                 Form form = Form::kWire);

}  // namespace muster::record
