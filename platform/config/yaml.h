// YAML for people: the tree of base/yaml.h as JSON (human_document), which tables of fields read.
// Their faults get line numbers afterwards (locate). Repeated keys, which yaml-cpp ignores, are
// detected here.
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
#include "base/yaml.h"

namespace muster::config {

using base::Result;

using base::kMaxYamlBytes;
using base::kMaxYamlDepth;
using base::kMaxYamlValues;
using base::parse_yaml;
using base::parse_yaml_documents;
using base::YamlEntry;
using base::YamlValue;

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
