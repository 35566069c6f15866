#include "cli/spec/spec_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/spec/spec_flags.h"
#include "config/yaml.h"
#include "job/spec.h"
#include "job/spec_table.h"
#include "job/validate.h"

namespace muster::cli::spec {

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

constexpr const char* kSetFlag = "--set";

class SpecFile {
 public:
  explicit SpecFile(const job::JobSpec& defaults) : spec_(defaults) {}

  Result<SpecRead> read(const config::YamlValue& root, const std::string& source,
                        const FileOverrides& overrides) {
    nlohmann::json document = config::human_document(root, lines_, faults_);
    const record::Path top;
    const std::string folder = spec_.folder;
    take_workspace(document);
    take_name(document, overrides.name);
    const auto tree = record::ValueTree::of(document);
    record::read(record::Input{tree.root(), top, faults_, record::Form::kHuman}, spec_);
    locate_faults(root.line);
    const job::JobSpec of_file = spec_;
    if (overrides.flags) set_ = overrides.flags(spec_);
    note_set(of_file);
    const job::JobSpec flagged = spec_;
    set(overrides.settings);
    if (workspace_ && has("folder")) {
      fault("folder", "cannot be used with workspace, which is the tasks' working folder",
            lines_.has("folder") ? lines_.of("folder") : 0);
    }
    note_changes(of_file, flagged);
    resolve_paths(folder, spec_);
    if (document.is_object()) {
      note_inherited();
      report_missing(root.line);
      report_invalid();
    }
    for (const Fault& fault : setting_faults_) faults_.push_back(fault_of_setting(fault));
    if (faults_.empty()) {
      return SpecRead{.spec = std::move(spec_),
                      .workspace = std::move(workspace_),
                      .changes = std::move(changes_)};
    }
    sort_faults();
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "'" + source + "'" +
                (is_changed_wrongly_ ? ", as the command line changes it, has " : " has ") +
                base::count_text(static_cast<int64_t>(faults_.size()), "fault"),
        .faults = std::move(faults_)};
  }

 private:
  bool has(const std::string& field) const { return lines_.has(field) || set_.contains(field); }

  void locate_faults(int root_line) {
    for (Fault& fault : faults_) {
      if (fault.line == 0) fault.line = fault.field.empty() ? root_line : lines_.of(fault.field);
    }
  }

  void take_workspace(nlohmann::json& document) {
    if (!document.is_object() || !document.contains("workspace")) return;
    nlohmann::json value = std::move(document["workspace"]);
    document.erase("workspace");
    if (value.is_string()) value = {{"from", value}};
    const auto tree = record::ValueTree::of(value);
    const record::Path top;
    const record::Path path(top, "workspace");
    workspace_.emplace();
    record::read(record::Input{tree.root(), path, faults_, record::Form::kHuman}, *workspace_);
  }

  /// --name replaces the name of the file.
  void take_name(nlohmann::json& document, const std::string& name) {
    if (!document.is_object() || name.empty()) return;
    nlohmann::json& of_file = document["name"];
    if (of_file.is_string() && of_file != name) {
      changes_.push_back({.value = {.path = "name",
                                    .left = base::json_text(of_file),
                                    .right = base::json_text(nlohmann::json(name))}});
    }
    of_file = name;
    set_.insert("name");
  }

  /// The fields that flags have set.
  void note_set(const job::JobSpec& of_file) {
    for (const record::Difference& difference : record::differences(of_file, spec_)) {
      set_.insert(difference.path);
      set_.insert(difference.path.substr(0, difference.path.find_first_of("[.")));
    }
  }

  void note_changes(const job::JobSpec& of_file, const job::JobSpec& flagged) {
    for (ChangedValue& change : changed_values(of_file, flagged, spec_)) {
      change.was_given = lines_.has(change.value.path);
      changes_.push_back(std::move(change));
    }
  }

  void set(const std::vector<std::string>& settings) {
    SettingsRead read = apply_settings(settings, spec_);
    set_by_setting_ = read.keys;
    set_.merge(read.keys);
    setting_faults_ = std::move(read.faults);
    is_changed_wrongly_ = !setting_faults_.empty();
  }

  /// Records the values that come from the defaults and not from the file.
  void note_inherited() {
    std::set<std::string> names;
    for (const auto& [name, value] : spec_.environment) {
      if (!has("environment." + name)) names.insert(name);
    }
    job::note_inherited(names, !has("folder"), spec_);
  }

  void report_missing(int root_line) {
    const bool is_set = !spec_.command.empty() || !spec_.image.empty();
    if (!has("command") && !has("image") && !is_set) {
      fault("command", "is missing; give a command, such as [python3, train.py]", root_line);
    }
    if (spec_.kind == job::Kind::kMpi && !has("workers")) {
      fault("workers", "is missing; give a number", lines_.of("kind"));
    }
  }

  void report_invalid() {
    // The rest of the file was not read.
    if (faults_.size() >= record::kMostFaults) return;
    // A field that could not be read still has its default. What is wrong with that default is not
    // reported, because the user did not write it.
    std::vector<Fault> unread = faults_;
    unread.insert(unread.end(), setting_faults_.begin(), setting_faults_.end());
    job::add_dependents(unread);
    for (const Fault& found : job::validate(spec_)) {
      if (config::follows_from_unread(found.field, unread)) continue;
      if (!set_.contains(found.field)) {
        const bool is_gone = found.field == "folder" && spec_.folder.empty();
        fault(found.field, is_gone ? kFolderIsGone : found.what, lines_.of(found.field));
        continue;
      }
      is_changed_wrongly_ = true;
      if (set_by_setting_.contains(found.field)) {
        faults_.push_back(fault_of_setting(found));
      } else {
        // The name is an argument of most commands, so its field has no flag.
        const bool is_name = found.field == "name";
        fault(is_name ? "--name" : flag_of_spec_field(found.field), found.what, 0);
      }
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
  config::FieldLines lines_;
  std::optional<WorkspaceKey> workspace_;
  std::vector<ChangedValue> changes_;
  std::set<std::string> set_;  ///< fields that flags or settings have set
  std::set<std::string> set_by_setting_;
  std::vector<Fault> faults_;
  std::vector<Fault> setting_faults_;  ///< by key
  bool is_changed_wrongly_ = false;    ///< a flag or a setting is at fault
};

}  // namespace

Result<job::JobSpec> parse_spec_file(std::string_view text, const std::string& source,
                                     const job::JobSpec& defaults, const FileOverrides& overrides) {
  auto root = config::parse_yaml(text);
  if (!root) {
    Error error = std::move(root).error();
    error.what = "'" + source + "' is not a valid job file";
    return error;
  }
  return parse_spec_document(*root, source, defaults, overrides);
}

Result<job::JobSpec> parse_spec_document(const config::YamlValue& document,
                                         const std::string& source, const job::JobSpec& defaults,
                                         const FileOverrides& overrides) {
  MUSTER_TRY(SpecRead read, read_spec_document(document, source, defaults, overrides));
  return std::move(read.spec);
}

Result<SpecRead> read_spec_document(const config::YamlValue& document, const std::string& source,
                                    const job::JobSpec& defaults, const FileOverrides& overrides) {
  return SpecFile(defaults).read(document, source, overrides);
}

std::vector<ChangedValue> changed_values(const job::JobSpec& before, const job::JobSpec& flagged,
                                         const job::JobSpec& after) {
  std::set<std::string> by_setting;
  for (const record::Difference& difference : record::differences(flagged, after)) {
    by_setting.insert(difference.path);
  }
  std::vector<ChangedValue> changes;
  for (record::Difference& difference : record::differences(before, after)) {
    const bool is_by_setting = by_setting.contains(difference.path);
    changes.push_back({.value = std::move(difference), .by_setting = is_by_setting});
  }
  return changes;
}

using Json = nlohmann::json;

namespace {

Json setting_value(const std::string& key, const std::string& text, std::vector<Fault>& faults) {
  const bool is_flow = text.starts_with('[') || text.starts_with('{');
  if (!is_flow) return text;
  const auto yaml = config::parse_yaml(text);
  if (!yaml) {
    faults.push_back({.field = key, .what = "'" + text + "' is not valid YAML"});
    return nullptr;
  }
  config::FieldLines lines;
  std::vector<Fault> doubled;
  Json value = config::human_document(*yaml, lines, doubled);
  for (Fault& fault : doubled) {
    faults.push_back({.field = key + "." + fault.field, .what = std::move(fault.what)});
  }
  return value;
}

}  // namespace

SettingsRead apply_settings(const std::vector<std::string>& settings, job::JobSpec& spec) {
  SettingsRead read;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    const auto fault = [&](const std::string& what) {
      read.faults.push_back({.field = key, .what = what});
    };
    if (equals == std::string::npos || equals == 0) {
      read.faults.push_back(
          {.field = kSetFlag, .what = "'" + setting + "' is not KEY=VALUE, as in workers=4"});
    } else if (key == "name") {
      fault(
          "cannot be set with --set; give the name as an argument, or with --name if there is a "
          "job file");
    } else if (key == "kind") {
      fault("cannot be set with --set; the command or the job file determines the kind");
    } else if (key == "workspace") {
      fault("cannot be set with --set; give --workspace");
    } else if (!read.keys.insert(key).second) {
      fault("is set twice");
    } else {
      const size_t known = read.faults.size();
      const Json value = setting_value(key, setting.substr(equals + 1), read.faults);
      if (read.faults.size() == known) {
        const auto tree = record::ValueTree::of(value);
        record::assign(record::table_for<job::JobSpec>(), &spec, key, tree.root(), read.faults);
      }
    }
  }
  return read;
}

Fault fault_of_setting(const Fault& fault) {
  if (fault.field == kSetFlag) return fault;
  return {.field = kSetFlag, .what = base::fault_message(base::in_quotes(fault.field), fault.what)};
}

void resolve_paths(const std::string& folder, job::JobSpec& spec) {
  const std::filesystem::path from(folder);
  if (!spec.folder.empty()) spec.folder = (from / spec.folder).lexically_normal().string();
  for (job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath || volume.source.empty()) continue;
    volume.source = (from / volume.source).lexically_normal().string();
  }
}

}  // namespace muster::cli::spec
