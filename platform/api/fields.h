// Reads the fields of a JSON object into values, and notes every fault with the path of its field
// instead of stopping at the first.
//
//   Result<void> read = read_document(text, "spec", [&](Fields& fields) {
//     fields.read("name", spec.name, Need::kRequired);
//     fields.read("workers", spec.workers);
//   });
//
// What is absent (or null) and not required keeps the value it has; what nobody reads is unknown,
// and a fault. Not thread-safe. nlohmann's json stays inside fields.cc.
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

namespace muster::api {

enum class Need { kOptional, kRequired };

class Fields {
 public:
  using Json = nlohmann::json;
  using Read = std::function<void(Fields&)>;

  /// `path` is where the object stands: "" or "spec." or "tasks[0].".
  Fields(const Json& object, std::string path, std::vector<base::Fault>& faults);

  /// Text, or {"base64": "..."} for bytes that are none.
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
  /// The same, in which null means something.
  void read(std::string_view name, std::map<std::string, std::optional<std::string>>& into,
            Need need);
  template <class T>
  void read(std::string_view name, std::optional<T>& into) {
    if (!has(name)) return;
    T value{};
    read(name, value);
    into = std::move(value);
  }

  /// A decimal number, in thousandths: 0.5 is 500. Finer ones are faults.
  void read_milli(std::string_view name, int64_t& into, Need need = Need::kOptional);
  void read_milli(std::string_view name, int& into, Need need = Need::kOptional);

  /// One of `values`, by the name that `name_of` gives it.
  template <class Enum>
  void choose(std::string_view name, Enum& into, std::initializer_list<Enum> values,
              std::string_view (*name_of)(Enum), Need need = Need::kOptional) {
    std::vector<std::string> names;
    for (const Enum value : values) names.emplace_back(name_of(value));
    if (const auto index = choice(name, names, need)) into = values.begin()[*index];
  }

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
  /// What stands there, whatever it is; nullptr: nothing.
  const Json* value(std::string_view name);
  /// There, and null: for the few fields that tell that from absence.
  bool is_null(std::string_view name);
  /// Known, and of no interest.
  void ignore(std::string_view name) { known_.emplace_back(name); }
  /// For what only the caller can see to be wrong with a field.
  void fault(std::string_view name, std::string what) {
    note(path_ + std::string(name), std::move(what));
  }
  /// To be called last: notes the fields that nobody has asked for.
  void refuse_unknown();

 private:
  const Json* find(std::string_view name, Need need);
  std::optional<std::string> bytes_of(const Json& value, const std::string& path);
  std::optional<int64_t> integer_of(const Json& value, int64_t low, int64_t high,
                                    const std::string& path);
  std::optional<int64_t> milli(std::string_view name, int64_t low, int64_t high, Need need);
  std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high, Need need);
  std::optional<size_t> choice(std::string_view name, const std::vector<std::string>& names,
                               Need need);
  void read_within(const Json& value, const std::string& path, const Read& read);
  void expected(std::string_view what, const Json& value, const std::string& path);
  void note(std::string path, std::string what);

  const Json& object_;
  std::string path_;
  std::vector<base::Fault>& faults_;
  std::vector<std::string> known_;
};

/// Whether fields that nobody reads are faults: what a newer peer adds to a problem is none.
enum class Unknown { kRefused, kIgnored };

/// Parses `text` and reads its one object. kInvalid: it is no JSON, or has the faults that `read`
/// met; `noun` says what it ought to be ("spec").
base::Result<void> read_document(std::string_view text, std::string_view noun,
                                 const Fields::Read& read, Unknown unknown = Unknown::kRefused);

}  // namespace muster::api
