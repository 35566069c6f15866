// A YAML document as the tables of fields read it: JSON in which every scalar is text as it was
// written, and beside it the line of each field, for what is found to be wrong.
//
// Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/yaml_document.h"

namespace muster::cli {

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

}  // namespace muster::cli
