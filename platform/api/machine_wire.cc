#include "api/machine_wire.h"

#include "api/fields.h"

namespace muster::api {

using job::MachineType;
using job::MachineTypes;

namespace {

void write_type(JsonWriter& json, const std::string& name, const MachineType& type) {
  json.open('{');
  json.key("name").text(name);
  json.key("gpus").number(type.resources.gpus);
  json.key("gpu_share").milli(type.resources.gpu_share_milli);
  json.key("gpu_memory_bytes").number(type.resources.gpu_memory_bytes);
  json.key("gpu_model").text(type.gpu_model);
  json.key("cpus").milli(type.resources.cpu_milli);
  json.key("memory_bytes").number(type.resources.memory_bytes);
  json.close('}');
}

void read_type(Fields& fields, std::string& name, MachineType& type) {
  fields.read("name", name, Need::kRequired);
  fields.read("gpus", type.resources.gpus);
  fields.read_milli("gpu_share", type.resources.gpu_share_milli);
  fields.read("gpu_memory_bytes", type.resources.gpu_memory_bytes);
  fields.read("gpu_model", type.gpu_model);
  fields.read_milli("cpus", type.resources.cpu_milli);
  fields.read("memory_bytes", type.resources.memory_bytes);
}

}  // namespace

std::string machine_types_to_json(const MachineTypes& types) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("machine_types").open('[');
  for (const auto& [name, type] : types) write_type(json, name, type);
  json.close(']').close('}');
  return text;
}

base::Result<MachineTypes> machine_types_from_json(std::string_view text) {
  MachineTypes types;
  MUSTER_CHECK(read_document(text, "list of machine types", [&](Fields& fields) {
    fields.each(
        "machine_types",
        [&](Fields& inner) {
          std::string name;
          MachineType type;
          read_type(inner, name, type);
          types[std::move(name)] = std::move(type);
        },
        Need::kRequired);
  }));
  return types;
}

}  // namespace muster::api
