#include "cli/spec_settings.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/human_document.h"
#include "cli/yaml_document.h"
#include "job/spec_table.h"

namespace muster::cli {

using base::Fault;
using Json = nlohmann::json;

namespace {

Json setting_value(const std::string& key, const std::string& text, std::vector<Fault>& faults) {
  const bool is_flow = text.starts_with('[') || text.starts_with('{');
  if (!is_flow) return text;
  const auto yaml = parse_yaml(text);
  if (!yaml) {
    faults.push_back({.field = key, .what = "'" + text + "' is no YAML that can be used"});
    return nullptr;
  }
  FieldLines lines;
  std::vector<Fault> doubled;
  Json value = human_document(*yaml, lines, doubled);
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
          {.field = "--set", .what = "'" + setting + "' is not KEY=VALUE, as in workers=4"});
    } else if (key == "name") {
      fault("cannot be set; give the name to the command, or with -f by --name");
    } else if (key == "kind") {
      fault("cannot be set; the command or the job file says the kind");
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

void resolve_paths(const std::string& folder, job::JobSpec& spec) {
  const std::filesystem::path from(folder);
  if (!spec.folder.empty()) spec.folder = (from / spec.folder).lexically_normal().string();
  for (job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath || volume.source.empty()) continue;
    volume.source = (from / volume.source).lexically_normal().string();
  }
}

}  // namespace muster::cli
