// YAML as people write it: a small tree that knows its lines (parse_yaml; yaml-cpp stays inside
// yaml.cc), the same as JSON for tables of fields (human_document), and YamlFields, which reads
// fields into values and notes every fault with its field and line instead of stopping at the
// first.
//
// What yaml-cpp lets pass is kept visible here (keys that are given twice), and what makes YAML
// dangerous is bounded: nesting, and the number of values once aliases are followed.
//
// Pure. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"

namespace muster::config {

using base::Result;

struct YamlEntry;

struct YamlValue {
  enum class Type { kNull, kScalar, kList, kMap };
  Type type = Type::kNull;
  int line = 0;        ///< counts from 1
  std::string scalar;  ///< as it was written, without quotes: "yes" stays "yes"
  std::vector<YamlValue> list;
  std::vector<YamlEntry> map;  ///< in the order of the text; a key may stand there twice
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlValue value;
};

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr int kMaxYamlDepth = 32;
inline constexpr int kMaxYamlValues = 100'000;

/// Errors: kInvalid with one fault that has the line: a syntax error, more than one document, or
/// one of the bounds above passed.
Result<YamlValue> parse_yaml(std::string_view text);

/// The lines that fields came from, by their paths: "volumes[0].target".
class FieldLines {
 public:
  void note(const std::string& path, int line) { lines_[path] = line; }
  bool has(const std::string& path) const { return lines_.contains(path); }
  /// The line that a field stands on. A field that the document does not name has the line of the
  /// map or list around it, and line 1 if there is none.
  int of(std::string path) const;

 private:
  std::map<std::string, int> lines_;
};

/// Keys that are given twice are faults; the first counts.
nlohmann::json human_document(const YamlValue& value, FieldLines& lines,
                              std::vector<base::Fault>& faults);

/// Whether a fault of validation says nothing new: its field, or something that it is judged by,
/// could not be read. Elements of a list are judged as a whole.
bool follows_from_unread(const std::string& field, const std::vector<base::Fault>& unread);

class YamlFields {
 public:
  /// What reads the value of a key.
  using Keys = std::vector<std::pair<std::string, std::function<void(const YamlValue&)>>>;

  /// Reads each entry of `map` by its key, and reports keys that are unknown or given twice. The
  /// path of an entry is `prefix` and its key.
  void map(const YamlValue& map, const std::string& prefix, const Keys& known);

  /// That these keys of the outermost map are understood within the map `section` alone.
  void belong_in(const std::string& section, const std::vector<std::string>& keys);

  /// Whether `value` is of this type; a fault if not.
  bool is(const std::string& field, const YamlValue& value, YamlValue::Type wanted);

  bool text(const std::string& field, const YamlValue& value, std::string& target);
  /// A list of texts; or one, alone.
  void texts(const std::string& field, const YamlValue& value, std::vector<std::string>& target);
  /// A whole number that is not negative.
  bool count(const std::string& field, const YamlValue& value, int& target);
  void count(const std::string& field, const YamlValue& value, std::optional<int>& target);
  void flag(const std::string& field, const YamlValue& value, std::optional<bool>& target);
  void flag(const std::string& field, const YamlValue& value, bool& target);

  /// What `parse` makes of a text.
  template <class Parsed, class Target>
  void with(const std::string& field, const YamlValue& value,
            Result<Parsed> (*parse)(std::string_view), Target& target) {
    std::string written;
    if (!text(field, value, written)) return;
    if (const auto parsed = parse(written)) {
      target = static_cast<Target>(*parsed);
    } else {
      fault(field, parsed.error().what, value.line);
    }
  }

  /// One of `words`.
  template <class Target>
  void word(const std::string& field, const YamlValue& value, const std::vector<std::string>& words,
            std::optional<Target> (*find)(std::string_view), Target& target) {
    std::string written;
    if (!text(field, value, written)) return;
    if (const auto found = find(written)) {
      target = *found;
    } else {
      fault(field, is_none_of(written, words), value.line);
    }
  }

  void fault(const std::string& field, std::string what, int line);
  /// For what follows from a field that could not be read.
  void suspect(const std::string& field) { at_fault_.insert(field); }

  void came_from(const std::string& field, int line) { lines_.note(field, line); }
  bool has(const std::string& field) const { return lines_.has(field); }
  /// The line of a field, or of the nearest one that it is part of.
  int line_of(const std::string& field) const { return lines_.of(field); }
  bool is_at_fault(const std::string& field) const { return at_fault_.contains(field); }

  bool ok() const { return faults_.empty(); }
  std::vector<base::Fault> sorted_faults() const;

 private:
  static std::string is_none_of(const std::string& word, const std::vector<std::string>& words);
  void report_unknown(const YamlEntry& entry, const std::string& field, const Keys& known);

  std::map<std::string, std::string> sections_;  ///< of keys, as belong_in() was called
  FieldLines lines_;                             ///< of the fields that the text gives
  std::set<std::string> at_fault_;
  std::vector<base::Fault> faults_;
};

/// "a list", for sentences.
std::string name_of(YamlValue::Type type);

}  // namespace muster::config
