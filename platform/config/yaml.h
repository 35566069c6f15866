// YAML as people write it: a small tree that has the line of each value (parse_yaml; yaml-cpp stays
// inside yaml.cc), and the same as JSON (human_document), which tables of fields read. The faults
// that they note get their lines afterwards (locate).
//
// What yaml-cpp lets pass is kept visible here (keys that are given twice), and what makes YAML
// dangerous is bounded: nesting, and the number of values once aliases are followed.
//
// Pure. Not thread-safe.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
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

/// Gives each fault the line of its field, unless it has a line, and sorts the faults by line. A
/// fault of the whole document has `root_line`.
void locate(std::vector<base::Fault>& faults, const FieldLines& lines, int root_line);

/// Whether a fault of validation says nothing new: its field, or something that it is judged by,
/// could not be read. Elements of a list are judged as a whole.
bool follows_from_unread(const std::string& field, const std::vector<base::Fault>& unread);

}  // namespace muster::config
