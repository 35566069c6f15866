#include "api/fields.h"
#include "api/project_wire.h"

namespace muster::api {

namespace {

using Write = JsonWriter& (JsonWriter::*)(int64_t);

void write_amount(JsonWriter& json, std::string_view name, const ShareChange::Amount& amount,
                  Write write) {
  if (!amount) return;
  json.key(name);
  if (*amount) {
    (json.*write)(**amount);
  } else {
    json.null();
  }
}

void write_share_change(JsonWriter& json, std::string_view name, const ShareChange& share) {
  if (share == ShareChange{}) return;
  json.key(name).open('{');
  write_amount(json, "gpus", share.gpu_milli, &JsonWriter::milli);
  write_amount(json, "cpus", share.cpu_milli, &JsonWriter::milli);
  write_amount(json, "memory_bytes", share.memory_bytes, &JsonWriter::number);
  json.close('}');
}

void write_quota_change(JsonWriter& json, const QuotaChange& quota) {
  json.open('{');
  write_share_change(json, "deserved", quota.deserved);
  write_share_change(json, "limit", quota.limit);
  if (quota.weight) json.key("weight").real(*quota.weight);
  json.close('}');
}

void write_pools(JsonWriter& json, const ProjectChange& change) {
  if (change.pools.empty() && change.removed_pools.empty()) return;
  json.key("pools").open('{');
  for (const std::string& pool : change.removed_pools) json.key(pool).null();
  for (const auto& [pool, quota] : change.pools) {
    json.key(pool);
    write_quota_change(json, quota);
  }
  json.close('}');
}

void write_duration(JsonWriter& json, std::string_view name,
                    const std::optional<std::chrono::milliseconds>& time) {
  if (time) json.key(name).number(time->count());
}

}  // namespace

std::string project_change_to_json(const std::string& name, const ProjectChange& change) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  if (!name.empty()) json.key("name").text(name);
  if (change.parent) json.key("parent").text(*change.parent);
  if (change.quota != QuotaChange{}) {
    json.key("quota");
    write_quota_change(json, change.quota);
  }
  write_pools(json, change);
  if (change.priority) json.key("priority").number(*change.priority);
  write_duration(json, "reclaim_min_runtime_ms", change.reclaim_min_runtime);
  write_duration(json, "preempt_min_runtime_ms", change.preempt_min_runtime);
  if (change.takes_the_rest) json.key("takes_the_rest").flag(*change.takes_the_rest);
  json.close('}');
  return text;
}

}  // namespace muster::api
