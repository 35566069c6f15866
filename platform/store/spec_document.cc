#include "store/spec_document.h"

#include "store/role_document.h"

namespace muster::store {

using job::JobSpec;
using job::Resources;
using job::RetryRule;
using job::Scheduling;

namespace {

void write_rule(CborWriter& out, const RetryRule& rule) {
  out.map(3);
  out.key("exit_code");
  write_optional(out, rule.exit_code, [&](int code) { out.number(code); });
  out.key("log_pattern").bytes(rule.log_pattern);
  out.key("action").text(job::to_string(rule.action));
}

RetryRule read_rule(const CborValue& value) {
  RetryRule rule{.log_pattern = bytes_of(value.at("log_pattern")),
                 .action = value_of(value.at("action"), job::retry_action_of)};
  if (!value.at("exit_code").is_null()) rule.exit_code = value.at("exit_code").small_number();
  return rule;
}

void write_scheduling(CborWriter& out, const Scheduling& scheduling) {
  const bool says_resize = scheduling.resize != job::Resize::kAuto;
  out.map(says_resize ? 13 : 12);
  out.key("purpose").text(job::to_string(scheduling.purpose));
  out.key("priority");
  write_optional(out, scheduling.priority, [&](int priority) { out.number(priority); });
  out.key("preemptible");
  write_optional(out, scheduling.preemptible, [&](bool preemptible) { out.flag(preemptible); });
  out.key("min_workers");
  write_optional(out, scheduling.min_workers, [&](int workers) { out.number(workers); });
  if (says_resize) out.key("resize").text(job::to_string(scheduling.resize));
  out.key("node_pools");
  write_bytes_list(out, scheduling.node_pools);
  out.key("gpu_models");
  write_bytes_list(out, scheduling.gpu_models);
  out.key("packing").text(job::to_string(scheduling.packing));
  out.key("required_topology").bytes(scheduling.required_topology);
  out.key("preferred_topology").bytes(scheduling.preferred_topology);
  out.key("time_limit_ms");
  write_optional(out, scheduling.time_limit, [&](auto limit) { out.number(limit.count()); });
  out.key("retries").number(scheduling.retries);
  out.key("retry_rules").list(scheduling.retry_rules.size());
  for (const RetryRule& rule : scheduling.retry_rules) write_rule(out, rule);
}

Scheduling read_scheduling(const CborValue& value) {
  Scheduling scheduling{.purpose = value_of(value.at("purpose"), job::purpose_of),
                        .node_pools = bytes_list_of(value.at("node_pools")),
                        .gpu_models = bytes_list_of(value.at("gpu_models")),
                        .packing = value_of(value.at("packing"), job::packing_of),
                        .required_topology = bytes_of(value.at("required_topology")),
                        .preferred_topology = bytes_of(value.at("preferred_topology")),
                        .retries = value.at("retries").small_number(),
                        .retry_rules = list_of<RetryRule>(value.at("retry_rules"), read_rule)};
  read_if_there(value, "priority", scheduling.priority, int_of);
  read_if_there(value, "preemptible", scheduling.preemptible, flag_of);
  read_if_there(value, "min_workers", scheduling.min_workers, int_of);
  read_if_there(value, "resize", scheduling.resize,
                [](const CborValue& name) { return value_of(name, job::resize_of); });
  read_if_there(value, "time_limit_ms", scheduling.time_limit, milliseconds_of);
  return scheduling;
}

Resources read_resources(const CborValue& value) {
  Resources resources{.gpus = value.at("gpus").small_number(),
                      .memory_bytes = value.at("memory_bytes").number()};
  read_if_there(value, "gpu_share_milli", resources.gpu_share_milli, int_of);
  read_if_there(value, "gpu_memory_bytes", resources.gpu_memory_bytes, number_of);
  // Once CPUs were whole ones.
  read_if_there(value, "cpus", resources.cpu_milli,
                [](const CborValue& cpus) { return int64_t{cpus.small_number()} * 1000; });
  read_if_there(value, "cpu_milli", resources.cpu_milli, number_of);
  return resources;
}

void write_secret_use(CborWriter& out, const job::SecretUse& use) {
  out.map(3);
  out.key("name").text(use.name);
  out.key("variable").text(use.variable);
  out.key("file").bytes(use.file);
}

std::vector<job::SecretUse> read_secret_uses(const CborValue& uses) {
  return list_of<job::SecretUse>(uses, [](const CborValue& value) {
    return job::SecretUse{.name = value.at("name").text(),
                          .variable = value.at("variable").text(),
                          .file = bytes_of(value.at("file"))};
  });
}

}  // namespace

void write_spec(CborWriter& out, const JobSpec& spec) {
  const SparseMap extras = extras_of(spec);
  out.map(18 + extras.count());
  out.key("name").text(spec.name);
  out.key("project").text(spec.project);
  out.key("kind").text(job::to_string(spec.kind));
  out.key("command");
  write_bytes_list(out, spec.command);
  out.key("workers").number(spec.workers);
  out.key("slots_per_worker").number(spec.slots_per_worker);
  out.key("gpus").number(spec.resources.gpus);
  out.key("gpu_share_milli").number(spec.resources.gpu_share_milli);
  out.key("gpu_memory_bytes").number(spec.resources.gpu_memory_bytes);
  out.key("cpu_milli").number(spec.resources.cpu_milli);
  out.key("memory_bytes").number(spec.resources.memory_bytes);
  out.key("scheduling");
  write_scheduling(out, spec.scheduling);
  out.key("environment");
  write_pairs(out, spec.environment);
  out.key("secrets").list(spec.secrets.size());
  for (const job::SecretUse& use : spec.secrets) write_secret_use(out, use);
  out.key("folder").bytes(spec.folder);
  out.key("sandbox").text(job::to_string(spec.sandbox));
  out.key("start_timeout_ms").number(spec.start_timeout.count());
  out.key("grace_ms").number(spec.grace.count());
  extras.write(out);
}

JobSpec read_spec(const CborValue& value) {
  JobSpec spec{.name = value.at("name").text(),
               .project = value.at("project").text(),
               .kind = value_of(value.at("kind"), job::kind_of),
               .command = bytes_list_of(value.at("command")),
               .workers = value.at("workers").small_number(),
               .slots_per_worker = value.at("slots_per_worker").small_number(),
               .resources = read_resources(value),
               .folder = bytes_of(value.at("folder")),
               .sandbox = value_of(value.at("sandbox"), job::sandbox_of),
               .start_timeout = milliseconds_of(value.at("start_timeout_ms")),
               .grace = milliseconds_of(value.at("grace_ms"))};
  read_if_there(value, "scheduling", spec.scheduling, read_scheduling);
  read_if_there(value, "secrets", spec.secrets, read_secret_uses);
  spec.environment = pairs_of(value.at("environment"));
  read_extras(value, spec);
  return spec;
}

}  // namespace muster::store
