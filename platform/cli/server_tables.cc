#include "cli/server_tables.h"

#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/units.h"

namespace muster::cli {

namespace {

/// Reads a map from names to maps; `read` has the keys of one.
template <class Row>
void read_rows(const KeyValue& table, std::map<std::string, Row, std::less<>>& target,
               const std::function<YamlFields::Keys(const std::string& prefix, Row& row)>& keys) {
  target.clear();
  YamlFields& fields = table.fields;
  if (table.value.type == YamlValue::Type::kNull) return;
  if (!fields.is(table.field, table.value, YamlValue::Type::kMap)) return;
  for (const YamlEntry& entry : table.value.map) {
    const std::string field = table.field + "." + entry.key;
    fields.came_from(field, entry.line);
    if (!fields.is(field, entry.value, YamlValue::Type::kMap)) continue;
    Row row;
    fields.map(entry.value, field + ".", keys(field + ".", row));
    if (!target.emplace(entry.key, std::move(row)).second) {
      fields.fault(field, "is given twice", entry.line);
    }
  }
}

/// A list of words, or one text for the shell.
void read_image_command(YamlFields& fields, const std::string& field, const YamlValue& value,
                        std::vector<std::string>& command) {
  if (value.type != YamlValue::Type::kScalar) {
    fields.texts(field, value, command);
    return;
  }
  command = {"sh", "-c", value.scalar};
  if (value.scalar.empty()) fields.fault(field, "is empty; say what to run", value.line);
}

/// Texts by name; each comes on top of what `target` has.
void read_named_texts(YamlFields& fields, const std::string& field, const YamlValue& value,
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

}  // namespace

void read_machine_types(const KeyValue& value, job::MachineTypes& target) {
  YamlFields& fields = value.fields;
  read_rows<job::MachineType>(
      value, target, [&fields](const std::string& prefix, job::MachineType& type) {
        job::Resources& claim = type.resources;
        return YamlFields::Keys{
            {"gpus",
             [&fields, prefix, &claim](const YamlValue& inner) {
               fields.count(prefix + "gpus", inner, claim.gpus);
             }},
            {"gpu_model",
             [&fields, prefix, &type](const YamlValue& inner) {
               fields.text(prefix + "gpu_model", inner, type.gpu_model);
             }},
            {"cpus",
             [&fields, prefix, &claim](const YamlValue& inner) {
               fields.with(prefix + "cpus", inner, base::parse_cpus, claim.cpu_milli);
             }},
            {"memory", [&fields, prefix, &claim](const YamlValue& inner) {
               fields.with(prefix + "memory", inner, base::parse_bytes, claim.memory_bytes);
             }}};
      });
}

void read_images(const KeyValue& value, job::ImageStandIns& target) {
  YamlFields& fields = value.fields;
  const std::filesystem::path base = value.folder;
  read_rows<job::ImageStandIn>(
      value, target, [&fields, base](const std::string& prefix, job::ImageStandIn& image) {
        return YamlFields::Keys{
            {"command",
             [&fields, prefix, &image](const YamlValue& inner) {
               read_image_command(fields, prefix + "command", inner, image.command);
             }},
            {"folder",
             [&fields, prefix, &image, base](const YamlValue& inner) {
               std::string folder;
               if (!fields.text(prefix + "folder", inner, folder)) return;
               image.folder = (base / folder).lexically_normal().string();
             }},
            {"environment", [&fields, prefix, &image](const YamlValue& inner) {
               read_named_texts(fields, prefix + "environment", inner, image.environment);
             }}};
      });
}

void read_host_table(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  if (value.value.type == YamlValue::Type::kNull) return;
  read_named_texts(value.fields, value.field, value.value, target);
}

}  // namespace muster::cli
