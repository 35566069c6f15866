// What a spec says of the tasks of one role, and of volumes. What has its default is not told.
#include "api/spec_wire.h"

namespace muster::api {

using job::RoleSpec;
using job::Volume;

void write_pairs(JsonWriter& json, std::string_view name,
                 const std::map<std::string, std::string>& pairs) {
  json.key(name).open('{');
  for (const auto& [key, value] : pairs) json.key(key).text(value);
  json.close('}');
}

void write_resources(JsonWriter& json, const job::Resources& resources) {
  json.open('{');
  json.key("gpus").number(resources.gpus);
  json.key("gpu_share").milli(resources.gpu_share_milli);
  json.key("gpu_memory_bytes").number(resources.gpu_memory_bytes);
  json.key("cpus").milli(resources.cpu_milli);
  json.key("memory_bytes").number(resources.memory_bytes);
  json.close('}');
}

void read_resources(Fields& fields, job::Resources& resources) {
  fields.read("gpus", resources.gpus);
  fields.read_milli("gpu_share", resources.gpu_share_milli);
  fields.read("gpu_memory_bytes", resources.gpu_memory_bytes);
  fields.read_milli("cpus", resources.cpu_milli);
  fields.read("memory_bytes", resources.memory_bytes);
}

void write_role_if_any(JsonWriter& json, std::string_view name, const RoleSpec& role) {
  if (role == RoleSpec()) return;
  json.key(name).open('{');
  if (!role.image.empty()) json.key("image").text(role.image);
  if (!role.user.empty()) json.key("user").text(role.user);
  write_login_if_any(json, role.registry);
  if (!role.command.empty()) json.key("command").texts(role.command);
  if (!role.arguments.empty()) json.key("arguments").texts(role.arguments);
  if (role.resources != job::Resources()) {
    json.key("resources");
    write_resources(json, role.resources);
  }
  if (!role.environment.empty()) write_pairs(json, "environment", role.environment);
  json.close('}');
}

void read_role(Fields& fields, RoleSpec& role) {
  fields.read("image", role.image);
  fields.read("user", role.user);
  read_login(fields, role.registry);
  fields.read("command", role.command);
  fields.read("arguments", role.arguments);
  fields.object("resources", [&](Fields& inner) { read_resources(inner, role.resources); });
  fields.read("environment", role.environment);
}

void write_volumes_if_any(JsonWriter& json, const std::vector<Volume>& volumes) {
  if (volumes.empty()) return;
  json.key("volumes").open('[');
  for (const Volume& volume : volumes) {
    json.open('{').key("kind").text(to_string(volume.kind));
    if (!volume.source.empty()) json.key("source").text(volume.source);
    json.key("target").text(volume.target);
    if (volume.read_only) json.key("read_only").flag(true);
    json.close('}');
  }
  json.close(']');
}

void read_volumes(Fields& fields, std::vector<Volume>& volumes) {
  using Kind = Volume::Kind;
  if (fields.has("volumes")) volumes.clear();
  fields.each("volumes", [&](Fields& inner) {
    Volume& volume = volumes.emplace_back();
    inner.choose("kind", volume.kind,
                 {Kind::kHostPath, Kind::kTree, Kind::kStorage, Kind::kArtifacts}, job::to_string,
                 Need::kRequired);
    inner.read("source", volume.source);
    inner.read("target", volume.target, Need::kRequired);
    inner.read("read_only", volume.read_only);
  });
}

}  // namespace muster::api
