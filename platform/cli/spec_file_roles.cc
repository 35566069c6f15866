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

void read_role_spec(YamlFields& fields, const std::string& field, const YamlValue& value,
                    RoleSpec& role) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  const std::string prefix = field + ".";
  fields.map(
      value, prefix,
      {{"image", [&](const YamlValue& inner) { fields.text(prefix + "image", inner, role.image); }},
       {"user", [&](const YamlValue& inner) { fields.text(prefix + "user", inner, role.user); }},
       {"registry",
        [&](const YamlValue& inner) {
          read_login(fields, prefix + "registry", inner, role.registry);
        }},
       {"command",
        [&](const YamlValue& inner) {
          read_command(fields, prefix + "command", inner, role.command);
        }},
       {"arguments",
        [&](const YamlValue& inner) { fields.texts(prefix + "arguments", inner, role.arguments); }},
       {"resources",
        [&](const YamlValue& inner) {
          read_resources(fields, prefix + "resources", inner, role.resources);
        }},
       {"environment", [&](const YamlValue& inner) {
          read_texts(fields, prefix + "environment", inner, role.environment);
        }}});
}

void read_volume_map(YamlFields& fields, const std::string& field, const YamlValue& value,
                     const std::filesystem::path& folder, Volume& volume) {
  const std::string prefix = field + ".";
  fields.map(
      value, prefix,
      {{"kind",
        [&](const YamlValue& inner) {
          fields.word(prefix + "kind", inner, {"host_path", "tree", "storage", "artifacts"},
                      job::volume_kind_of, volume.kind);
        }},
       {"source",
        [&](const YamlValue& inner) { fields.text(prefix + "source", inner, volume.source); }},
       {"target",
        [&](const YamlValue& inner) { fields.text(prefix + "target", inner, volume.target); }},
       {"read_only", [&](const YamlValue& inner) {
          fields.flag(prefix + "read_only", inner, volume.read_only);
        }}});
  // Which sources are right is not known where the kind is not.
  if (fields.is_at_fault(prefix + "kind")) fields.suspect(prefix + "source");
  if (volume.kind == Volume::Kind::kHostPath && !volume.source.empty()) {
    volume.source = (folder / volume.source).lexically_normal().string();
  }
}

void read_volumes(YamlFields& fields, const YamlValue& value, const std::filesystem::path& folder,
                  std::vector<Volume>& volumes) {
  if (!fields.is("volumes", value, YamlValue::Type::kList)) return;
  volumes.clear();
  for (size_t i = 0; i < value.list.size(); ++i) {
    const YamlValue& element = value.list[i];
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
      {"image", [&](const YamlValue& value) { fields.text("image", value, spec.image); }},
      {"arguments",
       [&](const YamlValue& value) { fields.texts("arguments", value, spec.arguments); }},
      {"worker_command",
       [&](const YamlValue& value) {
         read_command(fields, "worker_command", value, spec.worker_command);
       }},
      {"leader",
       [&](const YamlValue& value) { read_role_spec(fields, "leader", value, spec.leader); }},
      {"leader_slots",
       [&](const YamlValue& value) { fields.count("leader_slots", value, spec.leader_slots); }},
      {"allow_launcher_only",
       [&](const YamlValue& value) {
         fields.flag("allow_launcher_only", value, spec.allow_launcher_only);
       }},
      {"parameter_servers",
       [&](const YamlValue& value) {
         fields.count("parameter_servers", value, spec.parameter_servers);
       }},
      {"parameter_server",
       [&](const YamlValue& value) {
         read_role_spec(fields, "parameter_server", value, spec.parameter_server);
       }},
      {"evaluators",
       [&](const YamlValue& value) { fields.count("evaluators", value, spec.evaluators); }},
      {"evaluator",
       [&](const YamlValue& value) { read_role_spec(fields, "evaluator", value, spec.evaluator); }},
      {"volumes",
       [&fields, &spec, folder](const YamlValue& value) {
         read_volumes(fields, value, folder, spec.volumes);
       }},
      {"labels", [&](const YamlValue& value) { read_texts(fields, "labels", value, spec.labels); }},
      {"annotations",
       [&](const YamlValue& value) { read_texts(fields, "annotations", value, spec.annotations); }},
      {"held", [&](const YamlValue& value) { fields.flag("held", value, spec.held); }},
      {"input", [&](const YamlValue& value) { fields.flag("input", value, spec.input); }},
      {"terminal", [&](const YamlValue& value) { fields.flag("terminal", value, spec.terminal); }},
      {"keep_for", [&](const YamlValue& value) {
         fields.with("keep_for", value, job::parse_duration, spec.keep_for);
       }}};
}

}  // namespace muster::cli
