#include "config/yaml.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "record/input.h"

namespace muster::config {

using base::Fault;

using Json = nlohmann::json;

namespace {

class Converter {
 public:
  Converter(FieldLines& lines, std::vector<Fault>& faults) : lines_(lines), faults_(faults) {}

  Json convert(const YamlValue& value, const std::string& path) {
    switch (value.type) {
      case YamlValue::Type::kNull:
        return nullptr;
      case YamlValue::Type::kScalar:
        return value.scalar;
      case YamlValue::Type::kList:
        return list(value, path);
      case YamlValue::Type::kMap:
        return map(value, path);
    }
    return nullptr;
  }

 private:
  Json list(const YamlValue& value, const std::string& path) {
    Json list = Json::array();
    for (const YamlValue& element : value.list) {
      const std::string inner = path + "[" + std::to_string(list.size()) + "]";
      lines_.note(inner, element.line);
      list.push_back(convert(element, inner));
    }
    return list;
  }

  Json map(const YamlValue& value, const std::string& path) {
    Json map = Json::object();
    for (const YamlEntry& entry : value.map) {
      const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
      if (map.contains(entry.key)) {
        faults_.push_back({.field = inner, .what = "is given twice", .line = entry.line});
        continue;
      }
      lines_.note(inner, entry.line);
      map[entry.key] = convert(entry.value, inner);
    }
    return map;
  }

  FieldLines& lines_;
  std::vector<Fault>& faults_;
};

/// "volumes[0]" of "volumes[0].target"; the path itself if it contains no list.
std::string_view element_of(std::string_view path) {
  return path.substr(0,
                     path.find(']') == std::string_view::npos ? path.size() : path.find(']') + 1);
}

}  // namespace

int FieldLines::of(std::string path) const {
  while (true) {
    if (const auto found = lines_.find(path); found != lines_.end()) return found->second;
    const size_t part = path.find_last_of(".[");
    if (part == std::string::npos) return 1;
    path.resize(part);
  }
}

Json human_document(const YamlValue& value, FieldLines& lines, std::vector<Fault>& faults) {
  return Converter(lines, faults).convert(value, "");
}

void locate(std::vector<Fault>& faults, const FieldLines& lines, int root_line) {
  for (Fault& fault : faults) {
    if (fault.line == 0) fault.line = fault.field.empty() ? root_line : lines.of(fault.field);
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [](const Fault& a, const Fault& b) { return a.line < b.line; });
}

bool follows_from_unread(const std::string& field, const std::vector<Fault>& unread) {
  return std::any_of(unread.begin(), unread.end(), [&](const Fault& fault) {
    return record::is_within(field, element_of(fault.field)) ||
           record::is_within(fault.field, field);
  });
}

}  // namespace muster::config
