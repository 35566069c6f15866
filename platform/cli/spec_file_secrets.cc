#include "cli/spec_file_secrets.h"

namespace muster::cli {

namespace {

using job::SecretUse;

void read_map(YamlFields& fields, const std::string& field, const YamlValue& value,
              SecretUse& use) {
  const std::string prefix = field + ".";
  const auto into = [&](const char* key, std::string& target) {
    return std::pair(std::string(key),
                     [&fields, path = prefix + key, &target](const YamlValue& inner) {
                       fields.text(path, inner, target);
                     });
  };
  fields.map(value, prefix,
             {into("name", use.name), into("variable", use.variable), into("file", use.file)});
  if (!fields.has(prefix + "name")) {
    fields.fault(prefix + "name", "is missing", value.line);
  }
  const auto unread = [&](const char* key) { return fields.is_at_fault(prefix + key); };
  if (!fields.has(prefix + "variable") && !fields.has(prefix + "file")) use.variable = use.name;
  // What could not be read is not nowhere.
  if (unread("name") || unread("variable") || unread("file")) fields.suspect(field);
}

}  // namespace

void read_secrets(YamlFields& fields, const YamlValue& value, std::vector<SecretUse>& secrets) {
  if (!fields.is("secrets", value, YamlValue::Type::kList)) return;
  secrets.clear();
  for (size_t i = 0; i < value.list.size(); ++i) {
    const YamlValue& element = value.list[i];
    const std::string field = "secrets[" + std::to_string(i) + "]";
    fields.came_from(field, element.line);
    SecretUse& use = secrets.emplace_back();
    if (element.type == YamlValue::Type::kMap) {
      read_map(fields, field, element, use);
    } else if (fields.text(field, element, use.name)) {
      use.variable = use.name;
    } else {
      for (const char* key : {".name", ".variable", ".file"}) fields.suspect(field + key);
    }
  }
}

}  // namespace muster::cli
