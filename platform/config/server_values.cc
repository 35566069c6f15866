#include "config/server_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/number.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::config {

namespace {

using std::chrono::milliseconds;

constexpr int64_t kLeastSize = 1 << 10;

bool is_flag(const KeyValue& value) {
  return value.field.starts_with("--");
}

bool is_variable(const KeyValue& value) {
  return value.field.starts_with("MUSTER_");
}

std::optional<std::string> text_of(const KeyValue& value) {
  std::string text;
  if (!value.fields.text(value.field, value.value, text)) return std::nullopt;
  return text;
}

std::optional<milliseconds> time_of(const KeyValue& value) {
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  const auto parsed = base::parse_duration(*text);
  if (parsed) return *parsed;
  add_fault(value, parsed.error().what);
  return std::nullopt;
}

std::optional<double> number_of(const KeyValue& value, const char* example) {
  const auto text = text_of(value);
  if (!text) return std::nullopt;
  const auto number = base::number_of<double>(*text);
  if (number && std::isfinite(*number) && *number >= 0) return number;
  add_fault(value, "'" + *text + "' is not a number such as " + example);
  return std::nullopt;
}

void read_word(const KeyValue& value, const std::vector<std::string>& words, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (std::find(words.begin(), words.end(), *text) != words.end()) {
    target = *text;
    return;
  }
  std::string what = "'" + *text + "' is none of";
  for (const std::string& word : words) what += " " + word;
  const std::string meant = base::nearest(*text, words);
  add_fault(value, what + (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
}

bool is_port(std::string_view text) {
  const auto port = base::number_of<int>(text);
  return port && *port >= 0 && *port <= 65535;
}

/// Whether a URL holds a password: "//user:password@" or "?password=".
bool holds_password(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string_view authority(url.data() + begin,
                                   std::min(url.find_first_of("/?", begin), url.size()) - begin);
  const size_t at = authority.rfind('@');
  const bool in_user =
      at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
  return in_user || url.find("?password=") != std::string::npos ||
         url.find("&password=") != std::string::npos;
}

bool is_url(const std::string& text) {
  return text.starts_with("postgres://") || text.starts_with("postgresql://");
}

void add_topology(const KeyValue& value, const std::string& entry,
                  std::map<std::string, std::string>& target) {
  const size_t equals = entry.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == entry.size()) {
    add_fault(value, "'" + entry + "' is not LEVEL=DOMAIN, as in rack=r1");
    return;
  }
  target[entry.substr(0, equals)] = entry.substr(equals + 1);
}

void read_topology_map(const KeyValue& value, std::map<std::string, std::string>& target) {
  for (const YamlEntry& entry : value.value.map) {
    const std::string field = value.field + "." + entry.key;
    std::string domain;
    if (!value.fields.text(field, entry.value, domain)) continue;
    if (entry.key.empty() || domain.empty()) {
      value.fields.fault(field, "a level and its domain need names, as in rack: r1", entry.line);
    } else if (!target.emplace(entry.key, domain).second) {
      value.fields.fault(field, "is given twice", entry.line);
    }
  }
}

/// Names of nodes stand in commands and in labels.
bool is_host_name(std::string_view name) {
  constexpr size_t kMost = 63;
  const auto fits = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_';
  };
  return !name.empty() && name.size() <= kMost && name.front() != '-' && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

void add_host(const KeyValue& value, const std::string& name, const std::string& url,
              std::map<std::string, std::string>& target) {
  if (!is_host_name(name) || url.empty()) {
    add_fault(value, "'" + name + (url.empty() ? "" : "=" + url) +
                         "' is not NAME=URL, as in gpu-1=ssh://ada@gpu-1");
  } else if (!target.emplace(name, url).second) {
    add_fault(value, "names '" + name + "' twice");
  }
}

}  // namespace

void add_fault(const KeyValue& value, std::string what) {
  value.fields.fault(value.field, std::move(what), value.value.line);
}

void read_text(const KeyValue& value, std::string& target) {
  value.fields.text(value.field, value.value, target);
}

void read_filled_text(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  target = *text;
}

void read_path(const KeyValue& value, std::optional<std::filesystem::path>& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  target = (value.folder / *text).lexically_normal();
}

void read_folders(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> folders;
  read_names(value, folders);
  for (std::string& folder : folders) folder = (value.folder / folder).lexically_normal().string();
  target = std::move(folders);
}

void read_names(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> names;
  value.fields.texts(value.field, value.value, names);
  target.clear();
  for (const std::string& entry : names) {
    for (std::string& name : base::split(entry, ',')) {
      if (name.empty()) {
        add_fault(value, "has an empty name");
      } else {
        target.push_back(std::move(name));
      }
    }
  }
}

void read_command(const KeyValue& value, std::vector<std::string>& target) {
  std::vector<std::string> words;
  value.fields.texts(value.field, value.value, words);
  if (!words.empty() && !words.front().starts_with('/')) {
    return add_fault(value, "'" + words.front() + "' is no path from the root");
  }
  target = std::move(words);
}

void read_store(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  if (text->empty()) return add_fault(value, "is empty");
  if (!is_url(*text)) {
    if (text->find("://") != std::string::npos) {
      return add_fault(value, "is no database that Muster knows; give a file or postgres://...");
    }
    // A server that a command starts by itself has another folder than the command had.
    if (is_variable(value) && !text->starts_with('/')) {
      return add_fault(value, "'" + *text + "' is a relative path; write it from the root");
    }
    target = (value.folder / *text).lexically_normal().string();
    return;
  }
  if (is_flag(value) && holds_password(*text)) {
    return add_fault(value,
                     "holds a password, which everybody on this machine can read there; "
                     "--store-password-file, ~/.pgpass or $MUSTER_STORE keep it");
  }
  target = *text;
}

void read_listen(const KeyValue& value, std::string& target) {
  const auto text = text_of(value);
  if (!text) return;
  const size_t colon = text->rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text->size() ||
      !is_port(std::string_view(*text).substr(colon + 1))) {
    return add_fault(value, "'" + *text + "' is not HOST:PORT, as in 0.0.0.0:7443");
  }
  target = *text;
}

void read_switch(const KeyValue& value, bool& target) {
  std::optional<bool> read;
  value.fields.flag(value.field, value.value, read);
  target = read.value_or(target);
}

void read_time(const KeyValue& value, milliseconds& target) {
  target = time_of(value).value_or(target);
}

void read_some_time(const KeyValue& value, milliseconds& target) {
  const auto time = time_of(value);
  if (!time) return;
  if (time->count() == 0) return add_fault(value, "is no time at all");
  target = *time;
}

void read_seconds(const KeyValue& value, milliseconds& target) {
  const auto time = time_of(value);
  if (!time) return;
  if (*time < std::chrono::seconds(1)) return add_fault(value, "is less than a second");
  target = *time;
}

void read_maybe_time(const KeyValue& value, std::optional<milliseconds>& target) {
  if (const auto time = time_of(value)) target = time;
}

void read_time_or_never(const KeyValue& value, std::optional<milliseconds>& target) {
  if (value.value.scalar == "never") {
    target = std::nullopt;
  } else {
    read_maybe_time(value, target);
  }
}

void read_time_or_forever(const KeyValue& value, std::optional<milliseconds>& target) {
  if (value.value.scalar == "forever") {
    target = std::nullopt;
  } else {
    read_maybe_time(value, target);
  }
}

void read_count_or_all(const KeyValue& value, std::optional<int>& target) {
  int number = 0;
  if (value.value.scalar == "all") {
    target = std::nullopt;
  } else if (value.fields.count(value.field, value.value, number)) {
    target = number;
  }
}

void read_size_or_all(const KeyValue& value, std::optional<int64_t>& target) {
  int64_t size = target.value_or(0);
  if (value.value.scalar == "all") {
    target = std::nullopt;
  } else {
    read_large_size(value, size);
    target = size;
  }
}

void read_rate(const KeyValue& value, double& target) {
  const auto number = number_of(value, "0.5 or 200");
  if (!number) return;
  if (*number == 0) return add_fault(value, "is 0, which would let nobody in");
  target = *number;
}

void read_decay(const KeyValue& value, double& target) {
  target = number_of(value, "0, 0.5 or 2").value_or(target);
}

void read_positive(const KeyValue& value, int& target) {
  int number = 0;
  if (!value.fields.count(value.field, value.value, number)) return;
  if (number == 0) return add_fault(value, "is 0, which would let nobody in");
  target = number;
}

void read_maybe_count(const KeyValue& value, std::optional<int>& target) {
  int number = 0;
  if (value.fields.count(value.field, value.value, number)) target = number;
}

void read_large_size(const KeyValue& value, int64_t& target) {
  const auto text = text_of(value);
  if (!text) return;
  const auto parsed = base::parse_bytes(*text);
  if (!parsed) return add_fault(value, parsed.error().what);
  if (*parsed < kLeastSize) return add_fault(value, "is less than 1Ki");
  target = *parsed;
}

void read_size_or_none(const KeyValue& value, int64_t& target) {
  if (text_of(value) == "0") {
    target = 0;
  } else {
    read_large_size(value, target);
  }
}

void read_size(const KeyValue& value, int64_t& target) {
  constexpr int64_t kMost = 1 << 30;
  const auto text = text_of(value);
  if (!text) return;
  const auto parsed = base::parse_bytes(*text);
  if (!parsed) return add_fault(value, parsed.error().what);
  if (*parsed < kLeastSize || *parsed > kMost)
    return add_fault(value, "is not between 1Ki and 1Gi");
  target = *parsed;
}

void read_log_format(const KeyValue& value, std::string& target) {
  read_word(value, {"text", "json"}, target);
}

void read_packing(const KeyValue& value, std::string& target) {
  read_word(value, {"fragmentation", "pack", "spread"}, target);
}

void read_engine(const KeyValue& value, std::string& target) {
  read_word(value, {"process", "container", "slurm"}, target);
}

void read_homes(const KeyValue& value, std::string& target) {
  read_word(value, {"user", "project"}, target);
}

void read_task_network(const KeyValue& value, std::string& target) {
  read_word(value, {"own", "shared"}, target);
}

void read_topology(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  if (value.value.type == YamlValue::Type::kMap) return read_topology_map(value, target);
  const auto text = text_of(value);
  if (!text) return;
  for (const std::string& entry : base::split(*text, ',')) add_topology(value, entry, target);
}

void read_container_hosts(const KeyValue& value, std::map<std::string, std::string>& target) {
  target.clear();
  if (value.value.type == YamlValue::Type::kNull) return;
  if (value.value.type == YamlValue::Type::kMap) {
    for (const YamlEntry& entry : value.value.map) {
      const std::string field = value.field + "." + entry.key;
      std::string url;
      if (!value.fields.text(field, entry.value, url)) continue;
      add_host({value.fields, field, entry.value, value.folder}, entry.key, url, target);
    }
    return;
  }
  const auto text = text_of(value);
  if (!text) return;
  for (const std::string& entry : base::split(*text, ',')) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string url = entry.substr(std::min(equals + 1, entry.size()));
    add_host(value, entry.substr(0, equals), url, target);
  }
}

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

}  // namespace muster::config
