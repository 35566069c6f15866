#include "api/spec_wire.h"

#include "api/wire.h"

namespace muster::api {

using job::JobSpec;

namespace {

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

void write_secrets(JsonWriter& json, const std::vector<job::SecretUse>& secrets) {
  json.open('[');
  for (const job::SecretUse& use : secrets) {
    json.open('{').key("name").text(use.name);
    if (!use.variable.empty()) json.key("variable").text(use.variable);
    if (!use.file.empty()) json.key("file").text(use.file);
    json.close('}');
  }
  json.close(']');
}

/// One that says nothing of where it goes becomes the variable of its name.
void read_secrets(Fields& fields, std::vector<job::SecretUse>& secrets) {
  if (fields.has("secrets")) secrets.clear();
  fields.each("secrets", [&](Fields& inner) {
    job::SecretUse& use = secrets.emplace_back();
    inner.read("name", use.name, Need::kRequired);
    inner.read("variable", use.variable);
    inner.read("file", use.file);
    if (!inner.has("variable") && !inner.has("file")) use.variable = use.name;
  });
}

}  // namespace

void write_spec(JsonWriter& json, const JobSpec& spec) {
  json.open('{');
  json.key("name").text(spec.name);
  json.key("project").text(spec.project);
  json.key("kind").text(to_string(spec.kind));
  json.key("command").texts(spec.command);
  json.key("workers").number(spec.workers);
  json.key("slots_per_worker").number(spec.slots_per_worker);
  json.key("resources");
  write_resources(json, spec.resources);
  json.key("scheduling");
  write_scheduling(json, spec.scheduling);
  json.key("environment").open('{');
  for (const auto& [name, value] : spec.environment) json.key(name).text(value);
  json.close('}');
  json.key("secrets");
  write_secrets(json, spec.secrets);
  json.key("folder").text(spec.folder);
  json.key("sandbox").text(to_string(spec.sandbox));
  json.key("start_timeout_ms").number(spec.start_timeout.count());
  json.key("grace_ms").number(spec.grace.count());
  json.close('}');
}

void read_spec(Fields& fields, JobSpec& spec) {
  fields.read("name", spec.name, Need::kRequired);
  fields.read("project", spec.project);
  fields.choose("kind", spec.kind, {job::Kind::kSingle, job::Kind::kMpi}, job::to_string);
  fields.read("command", spec.command, Need::kRequired);
  fields.read("workers", spec.workers);
  fields.read("slots_per_worker", spec.slots_per_worker);
  fields.object("resources", [&](Fields& inner) { read_resources(inner, spec.resources); });
  fields.object("scheduling", [&](Fields& inner) { read_scheduling(inner, spec.scheduling); });
  fields.read("environment", spec.environment);
  read_secrets(fields, spec.secrets);
  fields.read("folder", spec.folder, Need::kRequired);
  fields.choose("sandbox", spec.sandbox, {job::Sandbox::kBubblewrap, job::Sandbox::kNone},
                job::to_string);
  fields.read("start_timeout_ms", spec.start_timeout);
  fields.read("grace_ms", spec.grace);
}

std::string spec_to_json(const JobSpec& spec) {
  std::string text;
  JsonWriter json(text);
  write_spec(json, spec);
  return text;
}

Result<JobSpec> spec_from_json(std::string_view text) {
  JobSpec spec;
  MUSTER_CHECK(read_document(text, "spec", [&](Fields& fields) { read_spec(fields, spec); }));
  return spec;
}

}  // namespace muster::api
