#include "cli/spec_file_scheduling.h"

#include "job/units.h"

namespace muster::cli {

namespace {

using job::RetryRule;
using job::Scheduling;

void read_share(YamlFields& fields, const std::string& field, const YamlValue& value,
                int& share_milli) {
  int64_t milli = 0;
  fields.with(field, value, job::parse_milli, milli);
  if (fields.is_at_fault(field)) return;
  if (milli > 0 && milli < 1000) {
    share_milli = static_cast<int>(milli);
  } else {
    fields.fault(field, value.scalar + " is out of range; give 0.001 to 0.999", value.line);
  }
}

/// A part of one, such as 0.5.
bool is_share(const YamlValue& value) {
  const auto milli = job::parse_milli(value.scalar);
  return value.type == YamlValue::Type::kScalar && milli && *milli > 0 && *milli < 1000;
}

/// The keys of a mapping, each with its path and what reads it.
class MapKeys {
 public:
  explicit MapKeys(std::string prefix) : prefix_(std::move(prefix)) {}

  template <class Read>
  void add(const std::string& name, Read read) {
    keys_.emplace_back(
        name, [path = prefix_ + name, read](const YamlValue& value) { read(path, value); });
  }
  const YamlFields::Keys& all() const { return keys_; }

 private:
  std::string prefix_;
  YamlFields::Keys keys_;
};

void read_rule(YamlFields& fields, const std::string& field, const YamlValue& value,
               RetryRule& rule) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  const std::string prefix = field + ".";
  MapKeys keys(prefix);
  keys.add("exit_code", [&](const std::string& path, const YamlValue& inner) {
    fields.count(path, inner, rule.exit_code);
  });
  keys.add("log_pattern", [&](const std::string& path, const YamlValue& inner) {
    fields.text(path, inner, rule.log_pattern);
  });
  keys.add("action", [&](const std::string& path, const YamlValue& inner) {
    fields.word(path, inner, {"retry", "fail", "avoid-node"}, job::retry_action_of, rule.action);
  });
  fields.map(value, prefix, keys.all());
  const bool is_unread =
      fields.is_at_fault(prefix + "exit_code") || fields.is_at_fault(prefix + "log_pattern");
  if (is_unread) fields.suspect(field);
  if (!fields.has(prefix + "action")) fields.fault(prefix + "action", "is missing", value.line);
}

void read_retry_rules(YamlFields& fields, const YamlValue& value, std::vector<RetryRule>& rules) {
  const std::string field = "scheduling.retry_rules";
  if (!fields.is(field, value, YamlValue::Type::kList)) return;
  rules.clear();
  for (size_t i = 0; i < value.list.size(); ++i) {
    const std::string element = field + "[" + std::to_string(i) + "]";
    fields.came_from(element, value.list[i].line);
    read_rule(fields, element, value.list[i], rules.emplace_back());
  }
}

using Path = const std::string&;

void add_importance(YamlFields& fields, Scheduling& scheduling, MapKeys& keys) {
  keys.add("purpose", [&](Path path, const YamlValue& value) {
    fields.word(path, value, {"train", "build", "inference"}, job::purpose_of, scheduling.purpose);
  });
  keys.add("priority", [&](Path path, const YamlValue& value) {
    fields.count(path, value, scheduling.priority);
  });
  keys.add("preemptible", [&](Path path, const YamlValue& value) {
    fields.flag(path, value, scheduling.preemptible);
  });
  keys.add("min_workers", [&](Path path, const YamlValue& value) {
    fields.count(path, value, scheduling.min_workers);
  });
  keys.add("resize", [&](Path path, const YamlValue& value) {
    fields.word(path, value, {"auto", "live", "restart"}, job::resize_of, scheduling.resize);
  });
  keys.add("time_limit", [&](Path path, const YamlValue& value) {
    fields.with(path, value, job::parse_duration, scheduling.time_limit);
  });
  keys.add("retries", [&](Path path, const YamlValue& value) {
    fields.count(path, value, scheduling.retries);
  });
  keys.add("retry_rules", [&](Path, const YamlValue& value) {
    read_retry_rules(fields, value, scheduling.retry_rules);
  });
}

void add_places(YamlFields& fields, Scheduling& scheduling, MapKeys& keys) {
  keys.add("node_pools", [&](Path path, const YamlValue& value) {
    fields.texts(path, value, scheduling.node_pools);
  });
  keys.add("gpu_models", [&](Path path, const YamlValue& value) {
    fields.texts(path, value, scheduling.gpu_models);
  });
  keys.add("packing", [&](Path path, const YamlValue& value) {
    fields.word(path, value, {"auto", "pack", "spread"}, job::packing_of, scheduling.packing);
  });
  keys.add("required_topology", [&](Path path, const YamlValue& value) {
    fields.text(path, value, scheduling.required_topology);
  });
  keys.add("preferred_topology", [&](Path path, const YamlValue& value) {
    fields.text(path, value, scheduling.preferred_topology);
  });
}

void add_resources(YamlFields& fields, job::Resources& resources, MapKeys& keys) {
  keys.add("gpus", [&](Path path, const YamlValue& inner) {
    if (!is_share(inner)) return void(fields.count(path, inner, resources.gpus));
    fields.fault(path,
                 "'" + inner.scalar +
                     "' is not a whole number; a part of one GPU is: gpu_share: " + inner.scalar,
                 inner.line);
  });
  keys.add("gpu_share", [&](Path path, const YamlValue& inner) {
    read_share(fields, path, inner, resources.gpu_share_milli);
  });
  keys.add("gpu_memory", [&](Path path, const YamlValue& inner) {
    fields.with(path, inner, job::parse_bytes, resources.gpu_memory_bytes);
  });
  keys.add("cpus", [&](Path path, const YamlValue& inner) {
    fields.with(path, inner, job::parse_cpus, resources.cpu_milli);
  });
  keys.add("memory", [&](Path path, const YamlValue& inner) {
    fields.with(path, inner, job::parse_bytes, resources.memory_bytes);
  });
}

std::vector<std::string> key_names(const MapKeys& keys) {
  std::vector<std::string> names;
  for (const auto& [name, read] : keys.all()) names.push_back(name);
  return names;
}

}  // namespace

void read_resources(YamlFields& fields, const std::string& field, const YamlValue& value,
                    job::Resources& resources) {
  if (!fields.is(field, value, YamlValue::Type::kMap)) return;
  MapKeys keys(field + ".");
  add_resources(fields, resources, keys);
  fields.map(value, field + ".", keys.all());
}

void read_scheduling(YamlFields& fields, const YamlValue& value, Scheduling& scheduling) {
  if (!fields.is("scheduling", value, YamlValue::Type::kMap)) return;
  MapKeys keys("scheduling.");
  add_importance(fields, scheduling, keys);
  add_places(fields, scheduling, keys);
  fields.map(value, "scheduling.", keys.all());
}

std::vector<std::string> names_of_resources() {
  YamlFields fields;
  job::Resources resources;
  MapKeys keys("");
  add_resources(fields, resources, keys);
  return key_names(keys);
}

std::vector<std::string> names_of_scheduling() {
  YamlFields fields;
  Scheduling scheduling;
  MapKeys keys("");
  add_importance(fields, scheduling, keys);
  add_places(fields, scheduling, keys);
  return key_names(keys);
}

}  // namespace muster::cli
