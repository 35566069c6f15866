#include "api/spec_wire.h"

#include "api/wire.h"

namespace muster::api {

using job::JobSpec;

namespace {

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

/// What most jobs say nothing of, and is not told then.
void write_programs(JsonWriter& json, const JobSpec& spec) {
  if (!spec.image.empty()) json.key("image").text(spec.image);
  write_containers(json, spec);
  write_slurm_if_any(json, spec.slurm);
  json.key("command").texts(spec.command);
  if (!spec.arguments.empty()) json.key("arguments").texts(spec.arguments);
  if (!spec.worker_command.empty()) json.key("worker_command").texts(spec.worker_command);
}

void write_task_groups(JsonWriter& json, const JobSpec& spec) {
  write_role_if_any(json, "leader", spec.leader);
  if (spec.leader_slots != 0) json.key("leader_slots").number(spec.leader_slots);
  if (spec.allow_launcher_only) json.key("allow_launcher_only").flag(true);
  if (spec.parameter_servers != 0) json.key("parameter_servers").number(spec.parameter_servers);
  write_role_if_any(json, "parameter_server", spec.parameter_server);
  if (spec.evaluators != 0) json.key("evaluators").number(spec.evaluators);
  write_role_if_any(json, "evaluator", spec.evaluator);
}

void write_marks(JsonWriter& json, const JobSpec& spec) {
  if (spec.held) json.key("held").flag(true);
  if (spec.input) json.key("input").flag(true);
  if (spec.terminal) json.key("terminal").flag(true);
  if (spec.keep_for) json.key("keep_for_ms").number(spec.keep_for->count());
  if (!spec.labels.empty()) write_pairs(json, "labels", spec.labels);
  if (!spec.annotations.empty()) write_pairs(json, "annotations", spec.annotations);
}

void read_task_groups(Fields& fields, JobSpec& spec) {
  fields.read("worker_command", spec.worker_command);
  fields.object("leader", [&](Fields& inner) { read_role(inner, spec.leader); });
  fields.read("leader_slots", spec.leader_slots);
  fields.read("allow_launcher_only", spec.allow_launcher_only);
  fields.read("parameter_servers", spec.parameter_servers);
  fields.object("parameter_server",
                [&](Fields& inner) { read_role(inner, spec.parameter_server); });
  fields.read("evaluators", spec.evaluators);
  fields.object("evaluator", [&](Fields& inner) { read_role(inner, spec.evaluator); });
}

}  // namespace

void write_spec(JsonWriter& json, const JobSpec& spec) {
  json.open('{');
  json.key("name").text(spec.name);
  json.key("project").text(spec.project);
  json.key("kind").text(to_string(spec.kind));
  write_programs(json, spec);
  json.key("workers").number(spec.workers);
  json.key("slots_per_worker").number(spec.slots_per_worker);
  json.key("resources");
  write_resources(json, spec.resources);
  write_task_groups(json, spec);
  write_volumes_if_any(json, spec.volumes);
  write_marks(json, spec);
  json.key("scheduling");
  write_scheduling(json, spec.scheduling);
  write_pairs(json, "environment", spec.environment);
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
  fields.choose("kind", spec.kind,
                {job::Kind::kSingle, job::Kind::kMpi, job::Kind::kGrpc, job::Kind::kTorch},
                job::to_string);
  fields.read("image", spec.image);
  read_containers(fields, spec);
  read_slurm(fields, spec.slurm);
  fields.read("command", spec.command, Need::kRequired);
  fields.read("arguments", spec.arguments);
  fields.read("workers", spec.workers);
  fields.read("slots_per_worker", spec.slots_per_worker);
  fields.object("resources", [&](Fields& inner) { read_resources(inner, spec.resources); });
  read_task_groups(fields, spec);
  read_volumes(fields, spec.volumes);
  fields.read("held", spec.held);
  fields.read("input", spec.input);
  fields.read("terminal", spec.terminal);
  fields.read("keep_for_ms", spec.keep_for);
  fields.read("labels", spec.labels);
  fields.read("annotations", spec.annotations);
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
