// YAML for people: a small tree with the line of each value (parse_yaml; yaml-cpp is used only in
// yaml.cc), and the same as JSON (human_document), which tables of fields read. Their faults get
// line numbers afterwards (locate).
//
// Faults that yaml-cpp ignores are detected here (repeated keys), and the dangers of YAML are
// bounded: nesting, and the number of values after aliases are expanded.
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
  std::string scalar;  ///< as written, without quotes: "yes" stays "yes"
  std::vector<YamlValue> list;
  std::vector<YamlEntry> map;  ///< in the order of the text; keys may be repeated
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
/// one of the limits above exceeded.
Result<YamlValue> parse_yaml(std::string_view text);

inline constexpr size_t kMaxYamlDocuments = 100;

/// The documents of a stream ("---" between them), without empty documents. The limits above apply to
/// the stream as a whole. Errors: as parse_yaml(); also more than kMaxYamlDocuments documents.
Result<std::vector<YamlValue>> parse_yaml_documents(std::string_view text);

/// The lines of fields by their paths: "volumes[0].target".
class FieldLines {
 public:
  void note(const std::string& path, int line) { lines_[path] = line; }
  bool has(const std::string& path) const { return lines_.contains(path); }
  /// The line of a field. A field that the document does not contain has the line of the map or
  /// list around it, or line 1.
  int of(std::string path) const;

 private:
  std::map<std::string, int> lines_;
};

/// Repeated keys are faults; the first value counts.
nlohmann::json human_document(const YamlValue& value, FieldLines& lines,
                              std::vector<base::Fault>& faults);

/// Gives each fault the line of its field, unless it has a line, and sorts the faults by line. A
/// fault of the whole document has `root_line`.
void locate(std::vector<base::Fault>& faults, const FieldLines& lines, int root_line);

/// Whether a fault of validation is redundant: its field, or a field on which it depends, could not
/// be read. Elements of a list are treated as a whole.
bool follows_from_unread(const std::string& field, const std::vector<base::Fault>& unread);

}  // namespace muster::config
