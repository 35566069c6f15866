#include "cli/spec_file_roles.h"

#include <set>
#include <string>
#include <utility>

#include "cli/content_flags.h"
#include "cli/spec_file_container.h"
#include "cli/spec_file_scheduling.h"
#include "job/units.h"

namespace muster::cli {

namespace {

using job::RoleSpec;
using job::Volume;
using Value = const YamlValue&;

void read_role(YamlFields& fields, const std::string& field, Value value, RoleSpec& role) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  const std::string prefix = field + ".";
  fields.map(
      value, prefix,
      {{"image", [&](Value inner) { fields.text(prefix + "image", inner, role.image); }},
       {"user", [&](Value inner) { fields.text(prefix + "user", inner, role.user); }},
       {"registry",
        [&](Value inner) { read_login(fields, prefix + "registry", inner, role.registry); }},
       {"command",
        [&](Value inner) { read_command(fields, prefix + "command", inner, role.command); }},
       {"arguments",
        [&](Value inner) { fields.texts(prefix + "arguments", inner, role.arguments); }},
       {"resources",
        [&](Value inner) { read_resources(fields, prefix + "resources", inner, role.resources); }},
       {"environment", [&](Value inner) {
          read_texts(fields, prefix + "environment", inner, role.environment);
        }}});
}

void read_flag(YamlFields& fields, const std::string& field, Value value, bool& target) {
  std::optional<bool> flag;
  fields.flag(field, value, flag);
  target = flag.value_or(target);
}

void read_volume_map(YamlFields& fields, const std::string& field, Value value,
                     const std::filesystem::path& folder, Volume& volume) {
  const std::string prefix = field + ".";
  fields.map(
      value, prefix,
      {{"kind",
        [&](Value inner) {
          fields.word(prefix + "kind", inner, {"host_path", "tree", "storage", "artifacts"},
                      job::volume_kind_of, volume.kind);
        }},
       {"source", [&](Value inner) { fields.text(prefix + "source", inner, volume.source); }},
       {"target", [&](Value inner) { fields.text(prefix + "target", inner, volume.target); }},
       {"read_only",
        [&](Value inner) { read_flag(fields, prefix + "read_only", inner, volume.read_only); }}});
  // Which sources are right is not known where the kind is not.
  if (fields.is_at_fault(prefix + "kind")) fields.suspect(prefix + "source");
  if (volume.kind == Volume::Kind::kHostPath && !volume.source.empty()) {
    volume.source = (folder / volume.source).lexically_normal().string();
  }
}

void read_volumes(YamlFields& fields, Value value, const std::filesystem::path& folder,
                  std::vector<Volume>& volumes) {
  if (!fields.is("volumes", value, YamlValue::Type::kList)) return;
  volumes.clear();
  for (size_t i = 0; i < value.list.size(); ++i) {
    Value element = value.list[i];
    const std::string field = "volumes[" + std::to_string(i) + "]";
    fields.came_from(field, element.line);
    Volume& volume = volumes.emplace_back();
    if (element.type == YamlValue::Type::kMap) {
      read_volume_map(fields, field, element, folder, volume);
      continue;
    }
    std::string text;
    if (!fields.text(field, element, text)) continue;
    if (const auto read = parse_volume(text, folder)) {
      volume = *read;
    } else {
      fields.fault(field, kVolumeForms, element.line);
      for (const char* part : {".source", ".target"}) fields.suspect(field + part);
    }
  }
}

}  // namespace

void read_command(YamlFields& fields, const std::string& field, const YamlValue& value,
                  std::vector<std::string>& command) {
  if (value.type != YamlValue::Type::kScalar) {
    fields.texts(field, value, command);
    return;
  }
  command = {"sh", "-c", value.scalar};
  if (value.scalar.empty()) fields.fault(field, "is empty; say what to run", value.line);
}

void read_texts(YamlFields& fields, const std::string& field, const YamlValue& value,
                std::map<std::string, std::string>& target) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  std::set<std::string> seen;
  for (const YamlEntry& entry : value.map) {
    const std::string path = field + "." + entry.key;
    fields.came_from(path, entry.line);
    if (!seen.insert(entry.key).second) fields.fault(path, "is given twice", entry.line);
    std::string text;
    if (entry.value.type == YamlValue::Type::kNull) {
      fields.fault(path, "has no value; write \"\" for an empty one", entry.line);
    } else if (fields.text(path, entry.value, text)) {
      target[entry.key] = text;
    }
  }
}

YamlFields::Keys role_keys(YamlFields& fields, job::JobSpec& spec,
                           const std::filesystem::path& folder) {
  return {
      {"image", [&](Value value) { fields.text("image", value, spec.image); }},
      {"arguments", [&](Value value) { fields.texts("arguments", value, spec.arguments); }},
      {"worker_command",
       [&](Value value) { read_command(fields, "worker_command", value, spec.worker_command); }},
      {"leader", [&](Value value) { read_role(fields, "leader", value, spec.leader); }},
      {"leader_slots",
       [&](Value value) { fields.count("leader_slots", value, spec.leader_slots); }},
      {"parameter_servers",
       [&](Value value) { fields.count("parameter_servers", value, spec.parameter_servers); }},
      {"parameter_server",
       [&](Value value) { read_role(fields, "parameter_server", value, spec.parameter_server); }},
      {"evaluators", [&](Value value) { fields.count("evaluators", value, spec.evaluators); }},
      {"evaluator", [&](Value value) { read_role(fields, "evaluator", value, spec.evaluator); }},
      {"volumes", [&fields, &spec,
                   folder](Value value) { read_volumes(fields, value, folder, spec.volumes); }},
      {"labels", [&](Value value) { read_texts(fields, "labels", value, spec.labels); }},
      {"annotations",
       [&](Value value) { read_texts(fields, "annotations", value, spec.annotations); }},
      {"held", [&](Value value) { read_flag(fields, "held", value, spec.held); }},
      {"input", [&](Value value) { read_flag(fields, "input", value, spec.input); }},
      {"terminal", [&](Value value) { read_flag(fields, "terminal", value, spec.terminal); }},
      {"keep_for",
       [&](Value value) { fields.with("keep_for", value, job::parse_duration, spec.keep_for); }}};
}

}  // namespace muster::cli
