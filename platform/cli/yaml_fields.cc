#include "cli/yaml_fields.h"

#include <algorithm>

#include "base/number.h"
#include "base/text.h"

namespace muster::cli {

using base::Fault;

std::string name_of(YamlValue::Type type) {
  switch (type) {
    case YamlValue::Type::kNull:
      return "nothing";
    case YamlValue::Type::kScalar:
      return "a single value";
    case YamlValue::Type::kList:
      return "a list";
    case YamlValue::Type::kMap:
      return "a map";
  }
  return "?";
}

void YamlFields::map(const YamlValue& map, const std::string& prefix, const Keys& known) {
  std::set<std::string> seen;
  for (const YamlEntry& entry : map.map) {
    const std::string field = prefix + entry.key;
    const auto key = std::find_if(known.begin(), known.end(),
                                  [&](const auto& each) { return each.first == entry.key; });
    if (key == known.end()) {
      report_unknown(entry, field, known);
    } else if (!seen.insert(entry.key).second) {
      fault(field, "is given twice", entry.line);
    } else {
      came_from(field, entry.line);
      key->second(entry.value);
    }
  }
}

void YamlFields::belong_in(const std::string& section, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) sections_[key] = section;
}

void YamlFields::report_unknown(const YamlEntry& entry, const std::string& field,
                                const Keys& known) {
  const auto section = sections_.find(field);
  if (section != sections_.end()) {
    return fault(field, "unknown key here; write it under '" + section->second + "'", entry.line);
  }
  std::vector<std::string> names;
  for (const auto& [name, read] : known) names.push_back(name);
  const std::string meant = base::nearest(entry.key, names);
  fault(field, "unknown key" + (meant.empty() ? "" : "; did you mean '" + meant + "'?"),
        entry.line);
}

bool YamlFields::is(const std::string& field, const YamlValue& value, YamlValue::Type wanted) {
  if (value.type == wanted) return true;
  fault(field, "must be " + name_of(wanted) + ", but is " + name_of(value.type), value.line);
  return false;
}

bool YamlFields::text(const std::string& field, const YamlValue& value, std::string& target) {
  if (!is(field, value, YamlValue::Type::kScalar)) return false;
  target = value.scalar;
  return true;
}

void YamlFields::texts(const std::string& field, const YamlValue& value,
                       std::vector<std::string>& target) {
  if (value.type == YamlValue::Type::kScalar) {
    target = {value.scalar};
    return;
  }
  if (!is(field, value, YamlValue::Type::kList)) return;
  target.clear();
  for (size_t i = 0; i < value.list.size(); ++i) {
    const std::string element = field + "[" + std::to_string(i) + "]";
    came_from(element, value.list[i].line);
    target.emplace_back();
    text(element, value.list[i], target.back());
  }
}

bool YamlFields::count(const std::string& field, const YamlValue& value, int& target) {
  std::string written;
  if (!text(field, value, written)) return false;
  const auto number = base::number_of<int>(written);
  if (!number) {
    fault(field, "'" + written + "' is not a whole number", value.line);
  } else if (*number < 0) {
    fault(field, written + " is negative", value.line);
  } else {
    target = *number;
    return true;
  }
  return false;
}

void YamlFields::count(const std::string& field, const YamlValue& value,
                       std::optional<int>& target) {
  int number = 0;
  if (count(field, value, number)) target = number;
}

void YamlFields::flag(const std::string& field, const YamlValue& value,
                      std::optional<bool>& target) {
  std::string written;
  if (!text(field, value, written)) return;
  if (written == "true" || written == "false") {
    target = written == "true";
  } else {
    fault(field, "'" + written + "' is neither true nor false", value.line);
  }
}

void YamlFields::flag(const std::string& field, const YamlValue& value, bool& target) {
  std::optional<bool> written;
  flag(field, value, written);
  target = written.value_or(target);
}

std::string YamlFields::is_none_of(const std::string& word, const std::vector<std::string>& words) {
  std::string what = "'" + word + "' is neither ";
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) what += i + 1 == words.size() ? " nor " : ", ";
    what += words[i];
  }
  const std::string meant = base::nearest(word, words);
  return what + (meant.empty() ? "" : "; did you mean '" + meant + "'?");
}

void YamlFields::fault(const std::string& field, std::string what, int line) {
  at_fault_.insert(field);
  faults_.push_back({.field = field, .what = std::move(what), .line = line});
}

std::vector<Fault> YamlFields::sorted_faults() const {
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Fault& a, const Fault& b) { return a.line < b.line; });
  return sorted;
}

}  // namespace muster::cli
