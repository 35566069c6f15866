#include "api/spec_wire.h"

namespace muster::api {

using job::Packing;
using job::Purpose;
using job::RetryRule;
using job::Scheduling;

namespace {

void write_rule(JsonWriter& json, const RetryRule& rule) {
  json.open('{');
  if (rule.exit_code) json.key("exit_code").number(*rule.exit_code);
  json.key("log_pattern").text(rule.log_pattern);
  json.key("action").text(to_string(rule.action));
  json.close('}');
}

RetryRule read_rule(Fields& fields) {
  using Action = RetryRule::Action;
  RetryRule rule;
  fields.read("exit_code", rule.exit_code);
  fields.read("log_pattern", rule.log_pattern);
  fields.choose("action", rule.action, {Action::kRetry, Action::kFail, Action::kAvoidNode},
                job::to_string, Need::kRequired);
  return rule;
}

}  // namespace

void write_scheduling(JsonWriter& json, const Scheduling& scheduling) {
  json.open('{');
  json.key("purpose").text(to_string(scheduling.purpose));
  if (scheduling.priority) json.key("priority").number(*scheduling.priority);
  if (scheduling.preemptible) json.key("preemptible").flag(*scheduling.preemptible);
  if (scheduling.min_workers) json.key("min_workers").number(*scheduling.min_workers);
  json.key("resize").text(to_string(scheduling.resize));
  json.key("node_pools").texts(scheduling.node_pools);
  json.key("gpu_models").texts(scheduling.gpu_models);
  json.key("packing").text(to_string(scheduling.packing));
  json.key("required_topology").text(scheduling.required_topology);
  json.key("preferred_topology").text(scheduling.preferred_topology);
  if (scheduling.time_limit) json.key("time_limit_ms").number(scheduling.time_limit->count());
  json.key("retries").number(scheduling.retries);
  json.key("retry_rules").open('[');
  for (const RetryRule& rule : scheduling.retry_rules) write_rule(json, rule);
  json.close(']').close('}');
}

void read_scheduling(Fields& fields, Scheduling& scheduling) {
  fields.choose("purpose", scheduling.purpose,
                {Purpose::kTrain, Purpose::kBuild, Purpose::kInference}, job::to_string);
  fields.read("priority", scheduling.priority);
  fields.read("preemptible", scheduling.preemptible);
  fields.read("min_workers", scheduling.min_workers);
  fields.choose("resize", scheduling.resize,
                {job::Resize::kAuto, job::Resize::kLive, job::Resize::kRestart}, job::to_string);
  fields.read("node_pools", scheduling.node_pools);
  fields.read("gpu_models", scheduling.gpu_models);
  fields.choose("packing", scheduling.packing, {Packing::kAuto, Packing::kPack, Packing::kSpread},
                job::to_string);
  fields.read("required_topology", scheduling.required_topology);
  fields.read("preferred_topology", scheduling.preferred_topology);
  fields.read("time_limit_ms", scheduling.time_limit);
  fields.read("retries", scheduling.retries);
  fields.each("retry_rules",
              [&](Fields& inner) { scheduling.retry_rules.push_back(read_rule(inner)); });
}

}  // namespace muster::api
