#include "cli/spec_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/human_document.h"
#include "cli/spec_settings.h"
#include "cli/yaml_document.h"
#include "job/inherited.h"
#include "job/spec_table.h"
#include "job/validate.h"

namespace muster::cli {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

class SpecFile {
 public:
  explicit SpecFile(const job::JobSpec& defaults) : spec_(defaults) {}

  Result<job::JobSpec> read(const YamlValue& root, const std::string& source,
                            const FileOverrides& overrides) {
    nlohmann::json document = human_document(root, lines_, faults_);
    const record::Path top;
    const std::string folder = spec_.folder;
    if (document.is_object() && !overrides.name.empty()) document["name"] = overrides.name;
    const auto tree = record::ValueTree::of(document);
    record::read(record::Input{tree.root(), top, faults_, record::Form::kHuman}, spec_);
    locate_faults(root.line);
    set(overrides.settings);
    resolve_paths(folder, spec_);
    if (document.is_object()) {
      note_inherited();
      report_missing();
      report_invalid();
    }
    if (faults_.empty()) return spec_;
    sort_faults();
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + source + "' has " + std::to_string(faults_.size()) +
                         (faults_.size() == 1 ? " fault" : " faults"),
                 .faults = std::move(faults_)};
  }

 private:
  bool has(const std::string& field) const { return lines_.has(field) || set_.contains(field); }
  bool is_at_fault(const std::string& field) const {
    return std::any_of(faults_.begin(), faults_.end(),
                       [&](const Fault& fault) { return fault.field == field; });
  }

  void locate_faults(int root_line) {
    for (Fault& fault : faults_) {
      if (fault.line == 0) fault.line = fault.field.empty() ? root_line : lines_.of(fault.field);
    }
  }

  void set(const std::vector<std::string>& settings) {
    SettingsRead read = apply_settings(settings, spec_);
    set_ = std::move(read.keys);
    for (Fault& fault : read.faults) faults_.push_back(std::move(fault));
  }

  /// What the defaults brought along, and the file does not say.
  void note_inherited() {
    std::set<std::string> names;
    for (const auto& [name, value] : spec_.environment) {
      if (!has("environment." + name)) names.insert(name);
    }
    job::note_inherited(names, !has("folder"), spec_);
  }

  void report_missing() {
    if (!has("command") && !has("image")) {
      fault("command", "is missing; say what to run, as in: [python3, train.py]", 1);
    }
    if (spec_.kind == job::Kind::kMpi && !has("workers")) {
      fault("workers", "is missing; say how many", lines_.of("kind"));
    }
  }

  void report_invalid() {
    // A field that could not be read still has its default. What is wrong with that default is not
    // reported, because the user did not write it.
    std::vector<Fault> unread = faults_;
    // Which numbers of which tasks are right is not known where the kind is not.
    if (is_at_fault("kind")) {
      for (const char* field :
           {"workers", "parameter_servers", "parameter_server", "evaluators", "evaluator"}) {
        unread.push_back({.field = field});
      }
    }
    if (is_at_fault("workers")) unread.push_back({.field = "scheduling.min_workers"});
    if (is_at_fault("scheduling.min_workers") || is_at_fault("parameter_servers")) {
      unread.push_back({.field = "scheduling.resize"});
    }
    for (const Fault& found : job::validate(spec_)) {
      if (follows_from_unread(found.field, unread)) continue;
      const bool is_set = set_.contains(found.field);
      fault(found.field, found.what, is_set ? 0 : lines_.of(found.field));
    }
  }

  void fault(const std::string& field, std::string what, int line) {
    faults_.push_back({.field = field, .what = std::move(what), .line = line});
  }

  void sort_faults() {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const Fault& a, const Fault& b) { return a.line < b.line; });
  }

  job::JobSpec spec_;
  FieldLines lines_;
  std::set<std::string> set_;
  std::vector<Fault> faults_;
};

}  // namespace

Result<job::JobSpec> parse_spec_file(std::string_view text, const std::string& source,
                                     const job::JobSpec& defaults, const FileOverrides& overrides) {
  auto root = parse_yaml(text);
  if (!root) {
    Error error = std::move(root).error();
    error.what = "'" + source + "' is no YAML that can be used";
    return error;
  }
  return SpecFile(defaults).read(*root, source, overrides);
}

}  // namespace muster::cli
