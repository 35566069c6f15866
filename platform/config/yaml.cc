#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/number.h"
#include "base/text.h"

namespace muster::config {

namespace {

using base::Error;
using base::ErrorCode;
using base::Fault;

Error error_at(int line, std::string what) {
  return {.code = ErrorCode::kInvalid,
          .what = "the YAML cannot be read",
          .faults = {Fault{.field = "", .what = std::move(what), .line = line}}};
}

/// Copies yaml-cpp's graph into our tree. Aliases are edges of the graph, so a few lines can stand
/// for billions of values, or for an endless chain: the copy counts what it makes.
class Copier {
 public:
  YamlValue copy(const YAML::Node& node, int parent_line, int depth) {
    YamlValue value{.line = line_of(node, parent_line)};
    if (depth > kMaxYamlDepth || ++count_ > kMaxYamlValues) {
      overflow_line_ = overflow_line_.value_or(value.line);
      return value;
    }
    if (node.IsScalar()) {
      value.type = YamlValue::Type::kScalar;
      value.scalar = node.Scalar();
    } else if (node.IsSequence()) {
      value.type = YamlValue::Type::kList;
      for (const auto& item : node) {
        if (overflow_line_) break;
        value.list.push_back(copy(item, value.line, depth + 1));
      }
    } else if (node.IsMap()) {
      value.type = YamlValue::Type::kMap;
      for (const auto& [key, item] : pairs_of(node)) {
        if (overflow_line_) break;
        const int line = line_of(key, value.line);
        value.map.push_back(
            {key.IsScalar() ? key.Scalar() : "", line, copy(item, line, depth + 1)});
      }
    }
    return value;
  }

  std::optional<int> overflow_line() const { return overflow_line_; }

 private:
  static std::vector<std::pair<YAML::Node, YAML::Node>> pairs_of(const YAML::Node& map) {
    std::vector<std::pair<YAML::Node, YAML::Node>> pairs;
    for (const auto& entry : map) pairs.emplace_back(entry.first, entry.second);
    return pairs;
  }

  /// An empty value has no mark of its own.
  static int line_of(const YAML::Node& node, int parent_line) {
    const int line = node.Mark().line;
    return line < 0 ? parent_line : line + 1;
  }

  int count_ = 0;
  std::optional<int> overflow_line_;
};

/// Hears of a stream's documents, and of nothing in them.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line() const { return line_; }

 private:
  int line_ = 0;
};

/// The line where a second document begins. Not YAML::LoadAll: yaml-cpp 0.7 finds documents without
/// end in some broken ones (",`" and a control character), and it would collect them all.
std::optional<int> second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.line();
}

Result<YamlValue> parse_or_throw(const std::string& text) {
  if (const auto line = second_document(text)) {
    return error_at(*line, "a second document begins; give each a file of its own");
  }
  const YAML::Node document = YAML::Load(text);
  if (!document.IsDefined() || document.IsNull()) return YamlValue{.line = 1};
  Copier copier;
  YamlValue value = copier.copy(document, 1, 0);
  if (const auto line = copier.overflow_line()) {
    return error_at(*line, "too much: more than " + std::to_string(kMaxYamlDepth) + " levels or " +
                               std::to_string(kMaxYamlValues) + " values");
  }
  return value;
}

}  // namespace

Result<YamlValue> parse_yaml(std::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return error_at(0, "is larger than " + std::to_string(kMaxYamlBytes >> 20) + " MiB");
  }
  try {
    return parse_or_throw(std::string(text));
  } catch (const YAML::Exception& error) {
    return error_at(error.mark.line + 1, error.msg);
  }
}

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

/// "volumes[0]" of "volumes[0].target"; the path itself where it is of no list.
std::string_view element_of(std::string_view path) {
  return path.substr(0,
                     path.find(']') == std::string_view::npos ? path.size() : path.find(']') + 1);
}

bool is_within(std::string_view inner, std::string_view outer) {
  return inner.starts_with(outer) &&
         (inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[');
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

bool follows_from_unread(const std::string& field, const std::vector<Fault>& unread) {
  return std::any_of(unread.begin(), unread.end(), [&](const Fault& fault) {
    return is_within(field, element_of(fault.field)) || is_within(fault.field, field);
  });
}

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

}  // namespace muster::config
